/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the loaded ICD loaders, and chooses how the hooks reach the driver. A wheel may carry its own
 * loader under another soname, loaded RTLD_LOCAL, where neither RTLD_NEXT nor dlopen by the usual
 * soname finds it: so look through what is mapped.
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

struct found {
    int count;
    char path[MAX_LOADERS][512];
};

bool krex_vendor_owns(const char *path) {
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, "libOpenCL", 9);
}

static int note_loader(struct dl_phdr_info *info, size_t size, void *found_) {
    struct found *found = found_;
    (void)size;
    size_t length = strlen(info->dlpi_name) + 1;
    if (found->count < MAX_LOADERS && krex_vendor_owns(info->dlpi_name) &&
        length <= sizeof found->path[0])
        memcpy(found->path[found->count++], info->dlpi_name, length);
    return 0;
}

/* The reference is kept: a loader that went away would leave us a dangling pointer. */
static void *in_loader(const char *path, const char *name) {
    void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    void *function = handle ? krex_real_dlsym(handle, name) : NULL;
    if (!function)
        dlerror(); /* this failure is none of the program's */
    return function;
}

void *krex_vendor_find(const char *name) {
    struct found found = {0};
    void *function = NULL;
    dl_iterate_phdr(note_loader, &found);
    for (int i = 0; i < found.count && !function; i++)
        function = in_loader(found.path[i], name);
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
    struct found found = {0};
    dl_iterate_phdr(note_loader, &found);
    const char *sole = found.count == 1 ? found.path[0] : NULL;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i].index >= 0)
            krex_store_relaxed(&krex_cl_route[entries[i].index],
                               sole ? in_loader(sole, entries[i].name) : NULL);
}
