/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the loaded ICD loaders, and chooses how the hooks reach the driver. A wheel may carry its own
 * loader under another soname, loaded RTLD_LOCAL, where neither RTLD_NEXT nor dlopen by the usual
 * soname finds it: so look through what is mapped. Some drivers are linked to without a loader, and
 * their objects need no dispatch table: where there is no loader, the library that has the API is it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "../atomic.h"
#include "../resolve.h"
#include "api.h"

#define MAX_LOADERS 8

void *krex_cl_route[KREX_CL_DISPATCH_SIZE];
uint32_t krex_cl_loaders;

/* Paths, each with its NUL, one after the other. */
struct paths {
    char *text;
    size_t used;
};

bool krex_cl_owns(const char *path) {
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, "libOpenCL", 9);
}

static int note_path(struct dl_phdr_info *info, size_t size, void *paths_) {
    struct paths *paths = paths_;
    size_t length = strlen(info->dlpi_name) + 1;
    char *text = length > 1 ? realloc(paths->text, paths->used + length) : NULL;
    (void)size;
    if (!text)
        return 0; /* the program itself, or no memory */
    memcpy(text + paths->used, info->dlpi_name, length);
    *paths = (struct paths){text, paths->used + length};
    return 0;
}

/* The reference is kept: a library that went away would leave us a dangling pointer. */
static void *in_library(const char *path, const char *name) {
    void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    void *function = handle ? krex_real_dlsym(handle, name) : NULL;
    if (!function)
        dlerror(); /* this failure is none of the program's */
    return function;
}

/* Has the API itself, and not by one of the libraries that it needs. */
static bool has_api(const char *path) {
    Dl_info info;
    void *function = in_library(path, "clGetPlatformIDs");
    return function && dladdr(function, &info) && info.dli_fname && !strcmp(info.dli_fname, path);
}

/* Keeps those that are accepted; how many. */
static int keep(struct paths *paths, bool (*accepted)(const char *path)) {
    int count = 0;
    size_t used = 0, length;
    for (size_t i = 0; i < paths->used; i += length) {
        length = strlen(paths->text + i) + 1;
        if (!accepted(paths->text + i))
            continue;
        memmove(paths->text + used, paths->text + i, length);
        used += length;
        count++;
    }
    paths->used = used;
    return count;
}

/* The libraries that programs can have the API from, to be freed; how many of them are loaders. */
static int find_libraries(struct paths *paths) {
    *paths = (struct paths){0};
    dl_iterate_phdr(note_path, paths);
    int loaders = keep(paths, krex_cl_owns);
    if (!loaders) {
        dl_iterate_phdr(note_path, paths);
        keep(paths, has_api);
    }
    return loaders;
}

void *krex_cl_find_any(const char *name) {
    struct paths paths;
    void *function = NULL;
    find_libraries(&paths);
    for (size_t i = 0; i < paths.used && !function; i += strlen(paths.text + i) + 1)
        function = in_library(paths.text + i, name);
    free(paths.text);
    return function;
}

static const struct {
    const char *name;
    int index; /* negative: an extension, which no loader exports */
} entries[] = {
#define KREX_CL_API(kind, ret, name, index, object, params, args) {#name, index},
#include "api.def"
#undef KREX_CL_API
};

/* Before each context is made, so before there is a queue. A thread that still goes the other way is
 * right too: what differs is only whether a layer in the loader sees the call. */
void krex_cl_choose_route(void) {
    struct paths paths;
    int loaders = find_libraries(&paths);
    const char *sole = loaders < 2 && paths.used ? paths.text : NULL;
    krex_store_relaxed(&krex_cl_loaders, (uint32_t)loaders);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i].index >= 0)
            krex_store_relaxed(&krex_cl_route[entries[i].index],
                               sole ? in_library(sole, entries[i].name) : NULL);
    free(paths.text);
}

void *krex_cl_find_first(int index, const char *name) {
    krex_cl_choose_route();
    void *route = index < 0 ? NULL : krex_load_relaxed(&krex_cl_route[index]);
    return route ? route : krex_cl_find_any(name);
}
