/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "grow.h"

static bool before(const struct timer *a, const struct timer *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct heap *h, size_t i, struct timer *t) {
    h->timers[i] = t;
    t->place = i + 1;
}

static void rise(struct heap *h, size_t i, struct timer *t) {
    for (; i && before(t, h->timers[(i - 1) / 2]); i = (i - 1) / 2)
        put(h, i, h->timers[(i - 1) / 2]);
    put(h, i, t);
}

static void sink(struct heap *h, size_t i, struct timer *t) {
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && before(h->timers[child + 1], h->timers[child]))
            child++;
        if (!before(h->timers[child], t))
            break;
        put(h, i, h->timers[child]);
    }
    put(h, i, t);
}

/* Puts a timer where there is a gap at i. */
static void settle(struct heap *h, size_t i, struct timer *t) {
    if (i && before(t, h->timers[(i - 1) / 2]))
        rise(h, i, t);
    else
        sink(h, i, t);
}

void heap_set(struct heap *h, struct timer *t, uint64_t at) {
    if (t->place && t->at == at)
        return;
    t->at = at;
    t->order = ++h->orders;
    if (t->place) {
        settle(h, t->place - 1, t);
        return;
    }
    h->timers = grow(h->timers, &h->room, h->count + 1, sizeof *h->timers);
    rise(h, h->count++, t);
}

void heap_drop(struct heap *h, struct timer *t) {
    if (!t->place)
        return;
    size_t i = t->place - 1;
    struct timer *last = h->timers[--h->count];
    t->place = 0;
    if (last != t)
        settle(h, i, last);
}

void heap_free(struct heap *h) {
    free(h->timers);
    *h = (struct heap){0};
}
