/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands that are watched one by one, by their events; each holds a reference to its own, so
 * that the handle stays that command's.
 */
#include <stdlib.h>
#include <string.h>

#include "drain.h"

enum { BUCKETS = 256, FEW = 64 };

struct krex_cl_pending {
    struct krex_cl_pending *next;
    cl_event event;
    uint64_t behind;
};

static struct krex_cl_pending *table[BUCKETS];
static size_t listed, crowd = FEW;

static struct krex_cl_pending **bucket(cl_event event) {
    uintptr_t address = (uintptr_t)event;
    return &table[(address >> 5 ^ address >> 13) % BUCKETS];
}

bool krex_cl_pending_add(cl_event event, uint64_t behind) {
    struct krex_cl_pending *p = malloc(sizeof *p);
    if (!p)
        return false;
    struct krex_cl_pending **first = bucket(event);
    *p = (struct krex_cl_pending){*first, event, behind};
    *first = p;
    listed++;
    return true;
}

uint64_t krex_cl_pending_behind(cl_event event) {
    for (struct krex_cl_pending *p = *bucket(event); p; p = p->next)
        if (p->event == event)
            return p->behind;
    return 0;
}

uint64_t krex_cl_pending_used(void) {
    uint64_t used = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct krex_cl_pending *p = table[i]; p; p = p->next)
            used |= p->behind;
    return used;
}

void krex_cl_pending_clear(uint64_t bits) {
    for (int i = 0; i < BUCKETS; i++)
        for (struct krex_cl_pending *p = table[i]; p; p = p->next)
            p->behind &= ~bits;
}

bool krex_cl_pending_crowded(void) { return listed >= crowd; }

bool krex_cl_pending_sweep(struct krex_cl_pending **gone) {
    bool done = true;
    for (int i = 0; i < BUCKETS; i++)
        for (struct krex_cl_pending **place = &table[i]; *place;) {
            struct krex_cl_pending *p = *place;
            bool outstanding = !p->behind && !krex_cl_complete(p->event);
            done = done && !outstanding;
            if (p->behind || outstanding) {
                place = &p->next;
                continue;
            }
            *place = p->next;
            p->next = *gone;
            *gone = p;
            listed--;
        }
    crowd = listed < FEW ? (size_t)2 * FEW
                         : 2 * listed; /* so that sweeping costs each command little */
    return done;
}

void krex_cl_pending_free(struct krex_cl_pending *gone) {
    while (gone) {
        struct krex_cl_pending *next = gone->next;
        KREX_REAL(gone->event, clReleaseEvent)(gone->event);
        free(gone);
        gone = next;
    }
}

void krex_cl_pending_start_over(void) {
    memset(table, 0, sizeof table);
    listed = 0;
}
