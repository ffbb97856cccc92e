/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks: krex_region_begin asks for exclusivity, krex_region_wait waits for it in slices (so that
 * an interpreter can look at its signals in between), krex_region_end gives it back.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "futex.h"
#include "gate.h"

#define EXPORT __attribute__((visibility("default")))

static __thread uint32_t depth; /* marks are re-entrant per thread: the outermost one counts */
static __thread int mark;

static bool disabled(void) {
    const char *mode = getenv("KREX_REGION");
    return mode && !strcmp(mode, "none");
}

/* Returns 1 when a wait is needed, 0 when none is: nested, switched off, or no controller. */
EXPORT int krex_region_begin(const char *name) {
    if (depth++)
        return 0;
    mark = -1;
    if (disabled() || !krex_client_ready(""))
        return 0;
    struct krex_block *b = krex_process.block;
    for (int i = 0; i < KREX_MARKS && mark < 0; i++)
        if (krex_cas_u32(&b->marks[i], KREX_MARK_FREE, KREX_MARK_REQUESTED))
            mark = i;
    if (mark < 0)
        return 0; /* more threads than marks: this one is not recorded as a region */
    if (krex_client_send(KREX_WIRE_ENTER, (uint32_t)mark, name, NULL))
        return 1;
    krex_store_release(&b->marks[mark], KREX_MARK_FREE);
    mark = -1;
    return 0;
}

/* Waits at most timeout_s seconds. 1: still waiting; 0: granted as exclusive; 2: granted as not
 * exclusive, or the controller is gone. */
EXPORT int krex_region_wait(double timeout_s) {
    if (mark < 0)
        return 2;
    uint32_t *state = &krex_process.block->marks[mark];
    if (krex_load_acquire(state) == KREX_MARK_REQUESTED)
        krex_futex_wait(state, KREX_MARK_REQUESTED, (uint64_t)(timeout_s * 1e9));
    uint32_t now = krex_load_acquire(state);
    if (now == KREX_MARK_EXCLUSIVE)
        return 0;
    if (now != KREX_MARK_REQUESTED)
        return 2;
    if (krex_load_relaxed(&krex_process.board->lease_deadline_ns) >= krex_now_ns())
        return 1;
    /* The controller is dead or stuck. Take the request back, so that one that resumes cannot grant
     * what has begun without it; if it granted just now, look again. */
    return krex_cas_u32(state, KREX_MARK_REQUESTED, KREX_MARK_SHARED) ? 2 : 1;
}

EXPORT void krex_region_end(void) {
    if (!depth)
        return;
    depth--;
    if (depth || mark < 0 || !krex_process.generation)
        return;
    krex_store_release(&krex_process.block->marks[mark], KREX_MARK_LEAVING);
    if (!krex_client_send(KREX_WIRE_LEAVE, (uint32_t)mark, NULL, NULL))
        krex_store_release(&krex_process.block->marks[mark], KREX_MARK_FREE);
    mark = -1;
}

/* Enters a region: the C and C++ way, which waits to the end. */
EXPORT void krex_region_enter(const char *name) {
    if (krex_region_begin(name))
        while (krex_region_wait(0.1) == 1) {
        }
}
