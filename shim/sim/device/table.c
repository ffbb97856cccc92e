/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdlib.h>

#include "grow.h"

static size_t home(const struct table *t, uint64_t key) {
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (t->size - 1);
}

/* The place of a key, or the free one where it would go. */
static struct place *seek(const struct table *t, uint64_t key) {
    size_t i = home(t, key);
    while (t->places[i].key && t->places[i].key != key)
        i = (i + 1) & (t->size - 1);
    return &t->places[i];
}

void *table_find(const struct table *t, uint64_t key) {
    return t->size && key ? seek(t, key)->thing : NULL;
}

static void enlarge(struct table *t) {
    struct table old = *t;
    t->size = old.size ? 2 * old.size : 16;
    t->places = make(t->size * sizeof *t->places);
    for (size_t i = 0; i < old.size; i++)
        if (old.places[i].key)
            *seek(t, old.places[i].key) = old.places[i];
    free(old.places);
}

void table_put(struct table *t, uint64_t key, void *thing) {
    if (2 * (t->count + 1) > t->size)
        enlarge(t);
    struct place *p = seek(t, key);
    t->count += !p->key;
    *p = (struct place){key, thing};
}

void table_drop(struct table *t, uint64_t key) {
    if (!table_find(t, key))
        return;
    size_t mask = t->size - 1;
    size_t gap = (size_t)(seek(t, key) - t->places);
    t->count--;
    for (size_t i = (gap + 1) & mask; t->places[i].key; i = (i + 1) & mask) {
        /* What stands behind the gap, and belongs at it or before, moves into it. */
        if (((i - home(t, t->places[i].key)) & mask) >= ((i - gap) & mask)) {
            t->places[gap] = t->places[i];
            gap = i;
        }
    }
    t->places[gap] = (struct place){0};
}

void table_free(struct table *t) {
    free(t->places);
    *t = (struct table){0};
}
