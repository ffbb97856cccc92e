/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds loaded ICD loaders. A wheel may carry its own under another soname, loaded RTLD_LOCAL, where
 * neither RTLD_NEXT nor dlopen by the usual soname finds it: so look through what is mapped.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

#define MAX_LOADERS 8

struct found {
    int count;
    char path[MAX_LOADERS][512];
};

static int note_loader(struct dl_phdr_info *info, size_t size, void *found_) {
    struct found *found = found_;
    (void)size;
    const char *base = strrchr(info->dlpi_name, '/');
    if (!base || strncmp(base, "/libOpenCL", 10) != 0 || found->count == MAX_LOADERS ||
        strlen(info->dlpi_name) >= sizeof found->path[0])
        return 0;
    memcpy(found->path[found->count++], info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 0;
}

void *krex_cl_from_loader(const char *name) {
    struct found found = {0};
    void *function = NULL;
    dl_iterate_phdr(note_loader, &found);
    for (int i = 0; i < found.count && !function; i++) {
        /* The reference is kept: a loader that went away would leave us a dangling pointer. */
        void *handle = dlopen(found.path[i], RTLD_NOLOAD | RTLD_LAZY);
        if (handle)
            function = dlsym(handle, name);
    }
    return function;
}
