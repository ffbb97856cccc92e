/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include <dlfcn.h>
#include <stddef.h>

#include "../atomic.h"
#include "../resolve.h"
#include "library.h"

enum { NO_DEVICE = 100, NOT_SUPPORTED = 801 }; /* the same of all vendors */

static bool choose_from(struct krex_routes *r, void *library) {
    if (!library)
        return false;
    for (int line = 0; line < r->lines; line++)
        krex_store_relaxed(&r->route[line], krex_real_dlsym(library, r->symbol(line)));
    krex_store_relaxed((uintptr_t *)&r->simulated,
                       (uintptr_t)krex_real_dlsym(library, "krex_sim_device_number"));
    dlerror(); /* what this driver lacks is no failure of the program's */
    krex_store_relaxed(&r->library, library);
    krex_store_release(&r->chosen, 1);
    return true;
}

bool krex_routes_choose(struct krex_routes *r) {
    return krex_load_acquire(&r->chosen) ||
           choose_from(r, krex_library_loaded(r->sonames, r->prefix));
}

void *krex_routes_find(struct krex_routes *r, const char *symbol) {
    int line = r->line_of(symbol);
    if (!krex_routes_choose(r))
        return NULL;
    if (line >= 0)
        return krex_load_relaxed(&r->route[line]);
    void *function = krex_real_dlsym(r->library, symbol);
    if (!function)
        dlerror();
    return function;
}

static unsigned int not_supported(void) { return NOT_SUPPORTED; }
static unsigned int no_device(void) { return NO_DEVICE; }

/* A program that is linked to a function which this driver lacks would not have started without our
 * export, nor one without a driver: both get an answer that says so. Arguments don't matter to it. */
void *krex_routes_find_slow(struct krex_routes *r, int line) {
    if (!krex_routes_choose(r) && !choose_from(r, krex_library_load(r->sonames)))
        return (void *)no_device;
    void *route = krex_load_relaxed(&r->route[line]);
    return route ? route : (void *)not_supported;
}

int krex_routes_simulated(struct krex_routes *r, int device) {
    return krex_routes_choose(r) && r->simulated ? r->simulated(device) : -1;
}
