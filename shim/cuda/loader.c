/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the driver's library and its functions in it. Never by RTLD_NEXT: another library may export
 * the same names, and a driver loaded RTLD_LOCAL is not in anybody's scope. All functions are looked
 * up at once, before the first call is announced at a gate: a lookup takes the loader's lock, and who
 * holds that may be waiting at the gate.
 *
 * A pending dlerror() of the program is lost only where a hook that was linked to is called before
 * anything was looked up; elsewhere the program's own lookup has just reset it.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "../resolve.h"
#include "api.h"
#include "drain.h"

#define SONAME "libcuda.so.1"

void *krex_cu_route[KREX_CU_LINES];
int (*krex_cu_simulated)(CUdevice);

/* Written once each, by whoever is first, with what everybody finds. */
static void *driver;
static uint32_t chosen;

bool krex_cu_owns(const char *path) {
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, "libcuda.so", 10);
}

/* A program may have loaded one from a path of its own, with another soname, or none. */
static int note_driver(struct dl_phdr_info *info, size_t size, void *path) {
    (void)size;
    if (!krex_cu_owns(info->dlpi_name))
        return 0;
    snprintf(path, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

/* The reference is kept: a library that went away would leave us dangling pointers. */
static void *open_loaded(void) {
    char path[PATH_MAX];
    void *handle = dlopen(SONAME, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle && dl_iterate_phdr(note_driver, path))
        handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle)
        dlerror(); /* this failure is none of the program's */
    return handle;
}

static bool choose_from(void *handle) {
    if (!handle)
        return false;
    for (int line = 0; line < KREX_CU_LINES; line++)
        krex_store_relaxed(&krex_cu_route[line],
                           krex_real_dlsym(handle, krex_cu_lines[line].symbol));
    krex_store_relaxed((uintptr_t *)&krex_cu_simulated,
                       (uintptr_t)krex_real_dlsym(handle, "krex_sim_device_number"));
    dlerror(); /* nor is what this driver lacks */
    krex_store_relaxed(&driver, handle);
    krex_store_release(&chosen, 1);
    return true;
}

bool krex_cu_choose_routes(void) {
    return krex_load_acquire(&chosen) || choose_from(open_loaded());
}

void *krex_cu_find_any(const char *symbol) {
    int line = krex_cu_line_of(symbol);
    if (!krex_cu_choose_routes())
        return NULL;
    if (line >= 0)
        return krex_load_relaxed(&krex_cu_route[line]);
    void *function = krex_real_dlsym(driver, symbol);
    if (!function)
        dlerror();
    return function;
}

static CUresult not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }
static CUresult no_device(void) { return CUDA_ERROR_NO_DEVICE; }

/* A program that is linked to a function which this driver lacks would not have started without our
 * export, nor one without a driver: both get an answer that says so. Arguments don't matter to it. */
void *krex_cu_find_slow(int line) {
    if (!krex_cu_choose_routes() && !choose_from(dlopen(SONAME, RTLD_LAZY))) {
        dlerror();
        return (void *)no_device;
    }
    void *route = krex_load_relaxed(&krex_cu_route[line]);
    return route ? route : (void *)not_supported;
}
