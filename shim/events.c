/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table with open addressing: a place is looked for from the handle's own on, and what is
 * dropped is closed up, so that a search may stop at the first free place.
 */
#include "events.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 256, MOST = 1 << 17 };

static struct krex_event *table;
static size_t size, used;

static size_t own_place(const void *handle) {
    return (size_t)((uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (size - 1);
}

/* Where it is, or the free place where it would be. */
static struct krex_event *place_of(const void *handle) {
    size_t i = own_place(handle);
    while (table[i].handle && table[i].handle != handle)
        i = (i + 1) & (size - 1);
    return &table[i];
}

struct krex_event *krex_event_find(const void *handle) {
    struct krex_event *e = size && handle ? place_of(handle) : NULL;
    return e && e->handle ? e : NULL;
}

static bool grow(void) {
    struct krex_event *old = table;
    size_t old_size = size, wanted = size ? 2 * size : LEAST;
    struct krex_event *bigger = calloc(wanted, sizeof *bigger);
    if (!bigger)
        return false;
    table = bigger;
    size = wanted;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].handle)
            *place_of(old[i].handle) = old[i];
    free(old);
    return true;
}

void krex_events_start_over(void) {
    if (used)
        memset(table, 0, size * sizeof *table);
    used = 0;
}

bool krex_events_are_full(void) { return 2 * used >= MOST; }

struct krex_event *krex_event_put(const void *handle) {
    struct krex_event *e = krex_event_find(handle);
    if (!e) {
        if (2 * used >= size && !grow())
            return NULL;
        e = place_of(handle);
        used++;
    }
    *e = (struct krex_event){.handle = handle};
    return e;
}

void krex_event_drop(const void *handle) {
    struct krex_event *gone = krex_event_find(handle);
    if (!gone)
        return;
    size_t hole = (size_t)(gone - table);
    for (size_t i = (hole + 1) & (size - 1); table[i].handle; i = (i + 1) & (size - 1)) {
        size_t own = own_place(table[i].handle);
        if (((i - own) & (size - 1)) < ((i - hole) & (size - 1)))
            continue; /* it is behind the hole because its own place is */
        table[hole] = table[i];
        hole = i;
    }
    table[hole] = (struct krex_event){0};
    used--;
}
