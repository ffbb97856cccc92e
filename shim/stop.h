/* SPDX-License-Identifier: Apache-2.0
 *
 * Named stop points, at which a test kills or stops this process, or another one: what krex/stops.py
 * is for the controller. Nothing of it is on the fast path; elsewhere a point is one load.
 */
#ifndef KREX_STOP_H
#define KREX_STOP_H

#include <stddef.h>

#include "atomic.h"

/* NULL, but for a process registered under KREX_TEST_STOP_AT. Defined in gate.c: tests/unit/c links
 * that without stop.c. */
extern void (*krex_stop_hook)(const char *name);

static inline void krex_stop_at(const char *name) {
    void (*hook)(const char *) = krex_load_relaxed(&krex_stop_hook);
    if (__builtin_expect(hook != NULL, 0))
        hook(name);
}

/* Reads KREX_TEST_STOP_AT. */
void krex_stop_prepare(void);

#endif
