/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers in the order of their times; those of one time in the order in which they were set. A timer
 * lies in what it belongs to, and knows its place, so that it can be moved or dropped.
 */
#ifndef KREX_SIM_HEAP_H
#define KREX_SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX

struct timer {
    uint64_t at;
    uint64_t order;
    size_t place; /* from 1; 0: not set */
    void (*fire)(struct timer *, uint64_t at);
};

struct heap {
    struct timer **timers;
    size_t count, room;
    uint64_t orders;
};

void heap_set(struct heap *, struct timer *, uint64_t at);
void heap_drop(struct heap *, struct timer *);
void heap_free(struct heap *);

static inline struct timer *heap_first(const struct heap *h) {
    return h->count ? h->timers[0] : NULL;
}

/* Its time; NEVER: there is none. */
static inline uint64_t heap_next(const struct heap *h) {
    return h->count ? h->timers[0]->at : NEVER;
}

#define OWNER(timer_, type, member) ((type *)((char *)(timer_) - offsetof(type, member)))

#endif
