/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the device process. It is little, and there is nothing sensible to do without it: when
 * there is none the process says so and ends, and its clients see a lost device.
 */
#ifndef KREX_SIM_GROW_H
#define KREX_SIM_GROW_H

#include <stdio.h>
#include <stdlib.h>

static inline void *have(void *memory) {
    if (!memory) {
        (void)!fputs("krex-sim-device: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static inline void *make(size_t size) { return have(calloc(1, size)); }

/* Makes room for `count` elements. */
static inline void *grow(void *elements, size_t *room, size_t count, size_t size) {
    if (count <= *room)
        return elements;
    *room = count < 8 ? 16 : 2 * count;
    return have(realloc(elements, *room * size));
}

#endif
