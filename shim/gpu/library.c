/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct search {
    const char *prefix;
    char path[PATH_MAX];
};

bool krex_library_is(const char *path, const char *prefix) {
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, prefix, strlen(prefix));
}

static int note_path(struct dl_phdr_info *info, size_t size, void *search) {
    struct search *s = search;
    (void)size;
    if (!krex_library_is(info->dlpi_name, s->prefix))
        return 0;
    snprintf(s->path, sizeof s->path, "%s", info->dlpi_name);
    return 1;
}

/* The failure to open one is none of the program's. */
static void *open_first(const char *const *sonames, int mode) {
    void *handle = NULL;
    for (; *sonames && !handle; sonames++)
        handle = dlopen(*sonames, mode);
    if (!handle)
        dlerror();
    return handle;
}

/* A program may have loaded one from a path of its own, with another soname, or none. */
void *krex_library_loaded(const char *const *sonames, const char *prefix) {
    struct search s = {.prefix = prefix};
    const char *paths[] = {s.path, NULL};
    void *handle = open_first(sonames, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle && dl_iterate_phdr(note_path, &s))
        handle = open_first(paths, RTLD_NOLOAD | RTLD_LAZY);
    return handle;
}

void *krex_library_load(const char *const *sonames) { return open_first(sonames, RTLD_LAZY); }
