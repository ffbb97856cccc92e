/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver's own functions, by the lines of its api.def. All are looked up at once, before the first
 * call is announced at a gate: a lookup takes the loader's lock, and who holds that may be waiting at
 * the gate.
 */
#ifndef KREX_GPU_ROUTES_H
#define KREX_GPU_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

struct krex_routes {
    const char *const *sonames; /* of its library, up to a NULL (library.h) */
    const char *prefix;         /* of the library's file */
    int lines;
    const char *(*symbol)(int line);
    int (*line_of)(const char *symbol); /* -1: it is in none */
    void **route;                       /* by line; NULL: there is none, or nobody has looked yet */

    /* Written once each, by whoever is first, with what everybody finds. */
    void *library;
    /* Of a simulated driver: the number of a device in its process; negative: it is none. Else NULL. */
    int (*simulated)(int device);
    uint32_t chosen;
};

/* Looks up all, if a driver is loaded. True: they are there. */
bool krex_routes_choose(struct krex_routes *r);
/* The driver's function of any symbol; NULL: it has none. */
void *krex_routes_find(struct krex_routes *r, const char *symbol);
/* For a line without a route: what a hook has to call. Never NULL. */
void *krex_routes_find_slow(struct krex_routes *r, int line);
/* The number of a simulated device; negative: it is another. */
int krex_routes_simulated(struct krex_routes *r, int device);

#endif
