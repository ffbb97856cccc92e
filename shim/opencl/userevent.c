/* SPDX-License-Identifier: Apache-2.0
 *
 * The user events that nobody has set. Each listed one has a reference of ours, so that its handle
 * stays its own. One more than fit is not listed: work behind it counts as outstanding.
 */
#include "../atomic.h"
#include "command.h"
#include "drain.h"

static struct {
    cl_event event;
    uint64_t made; /* when */
} slots[KREX_CL_USER_EVENTS];
static uint64_t made; /* so far */

uint64_t krex_cl_unset; /* bit i: slots[i] is in use */

static bool is_listed(int slot) { return krex_cl_unset >> slot & 1; }

static void list(int slot, cl_event event) {
    slots[slot].event = event;
    slots[slot].made = ++made;
    KREX_REAL(event, clRetainEvent)(event);
    krex_store_relaxed(&krex_cl_unset, krex_cl_unset | UINT64_C(1) << slot);
}

static uint64_t unlist(int slot) {
    uint64_t bit = UINT64_C(1) << slot;
    krex_store_relaxed(&krex_cl_unset, krex_cl_unset & ~bit);
    return bit;
}

static int find(cl_event event) {
    int slot = 0;
    while (slot < KREX_CL_USER_EVENTS && !(is_listed(slot) && slots[slot].event == event))
        slot++;
    return slot;
}

void krex_cl_user_event_list(cl_event event) {
    int slot = 0;
    while (slot < KREX_CL_USER_EVENTS && is_listed(slot))
        slot++;
    if (slot < KREX_CL_USER_EVENTS)
        list(slot, event);
}

uint64_t krex_cl_user_event_bit(cl_event event) {
    int slot = find(event);
    return slot < KREX_CL_USER_EVENTS ? UINT64_C(1) << slot : 0;
}

uint64_t krex_cl_user_event_time(void) { return made; }

uint64_t krex_cl_user_events_still(uint64_t bits, uint64_t time) {
    for (int slot = 0; slot < KREX_CL_USER_EVENTS; slot++)
        if (slots[slot].made > time)
            bits &= ~(UINT64_C(1) << slot);
    return bits & krex_cl_unset;
}

/* Only our reference is left. */
static bool unreachable(cl_event event) {
    cl_uint references = 0;
    KREX_REAL(event, clGetEventInfo)
    (event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
    return references == 1;
}

uint64_t krex_cl_user_events_settle(uint64_t used, cl_event gone[]) {
    uint64_t settled = 0;
    for (int slot = 0; slot < KREX_CL_USER_EVENTS; slot++) {
        if (!is_listed(slot))
            continue;
        gone[slot] = slots[slot].event;
        if (krex_cl_complete(gone[slot]) || (!(used >> slot & 1) && unreachable(gone[slot])))
            settled |= unlist(slot);
    }
    return settled;
}

/* Whoever sets it has a reference, so that ours is not the last one. */
uint64_t krex_cl_user_event_forget(cl_event event) {
    int slot = find(event);
    if (slot == KREX_CL_USER_EVENTS)
        return 0;
    KREX_REAL(event, clReleaseEvent)(event);
    return unlist(slot);
}

void krex_cl_user_events_start_over(void) { krex_store_relaxed(&krex_cl_unset, 0); }
