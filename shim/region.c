/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks: krex_region_begin asks for exclusivity, krex_region_wait waits for it in slices (so that
 * an interpreter can look at its signals in between), krex_region_end gives it back.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "futex.h"
#include "gate.h"
#include "log.h"
#include "stop.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void krex_region_end(void);

static __thread uint32_t depth; /* marks are re-entrant per thread: the outermost one counts */
static __thread int mark;       /* the outermost one's index in the block; -1: it has none */
static __thread uint64_t began; /* the generation of the process that began it */

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

/* A thread that ends inside its region would keep the device, and the mark, for its process's life. */
static void end_with_thread(void *unused) {
    (void)unused;
    if (depth) {
        depth = 1;
        krex_region_end();
    }
}

static void make_exit_key(void) {
    exit_key_made = pthread_key_create(&exit_key, end_with_thread) == 0;
}

static bool disabled(void) {
    const char *mode = getenv("KREX_REGION");
    return mode && !strcmp(mode, "none");
}

/* A process forked inside a region inherits this thread's words, but none of its parent's marks: it
 * shares the parent's hold, and its own outermost mark is the next it begins. Its generation differs,
 * having been wiped at the fork. */
static void forget_parents_mark(void) {
    if (depth && began != krex_process.generation)
        depth = 0;
}

static int take_mark(void) {
    static uint32_t warned;
    for (int i = 0; i < KREX_MARKS; i++)
        if (krex_cas_u32(&krex_process.block->marks[i], KREX_MARK_FREE, KREX_MARK_REQUESTED))
            return i;
    if (krex_cas_u32(&warned, 0, 1))
        krex_warn("more than %d threads are in a region at once: the others' are not recorded",
                  KREX_MARKS);
    return -1;
}

/* Returns 1 when a wait is needed, 0 when none is: nested, switched off, or no controller. */
EXPORT int krex_region_begin(const char *name) {
    forget_parents_mark();
    if (depth++)
        return 0;
    mark = !disabled() && krex_client_ready("") ? take_mark() : -1;
    began = krex_process.generation;
    if (mark < 0)
        return 0;
    pthread_once(&exit_key_once, make_exit_key);
    if (exit_key_made)
        pthread_setspecific(exit_key, &depth);
    if (krex_client_send(KREX_WIRE_ENTER, (uint32_t)mark, (uint64_t)syscall(SYS_gettid), name,
                         NULL)) {
        krex_stop_at("mark-requested");
        return 1;
    }
    krex_store_release(&krex_process.block->marks[mark], KREX_MARK_FREE);
    mark = -1;
    return 0;
}

/* Waits at most timeout_s seconds. 1: still waiting; 0: granted as exclusive; 2: granted as not
 * exclusive, or the controller is gone. */
EXPORT int krex_region_wait(double timeout_s) {
    if (mark < 0 || began != krex_process.generation)
        return 2;
    uint32_t *state = &krex_process.block->marks[mark];
    if (krex_load_acquire(state) == KREX_MARK_REQUESTED)
        krex_futex_wait(state, KREX_MARK_REQUESTED, (uint64_t)(timeout_s * 1e9));
    uint32_t now = krex_load_acquire(state);
    if (now == KREX_MARK_EXCLUSIVE) {
        krex_stop_at("mark-granted");
        return 0;
    }
    if (now != KREX_MARK_REQUESTED)
        return 2;
    if (krex_load_relaxed(&krex_process.board->lease_deadline_ns) >= krex_now_ns())
        return 1;
    /* The controller is dead or stuck. Take the request back, so that one that resumes cannot grant
     * what has begun without it; if it granted just now, look again. */
    return krex_cas_u32(state, KREX_MARK_REQUESTED, KREX_MARK_SHARED) ? 2 : 1;
}

/* Counted here, because the program goes on before the controller has read that its region ended. */
static uint64_t submissions(void) {
    struct krex_block *b = krex_process.block;
    uint64_t n = krex_load_relaxed(&b->overflow_count);
    for (uint32_t i = 0; i < krex_load_acquire(&b->words_used); i++)
        n += krex_load_relaxed(&b->words[i].count);
    return n;
}

EXPORT void krex_region_end(void) {
    forget_parents_mark();
    if (!depth)
        return;
    depth--;
    if (depth || mark < 0)
        return;
    krex_store_release(&krex_process.block->marks[mark], KREX_MARK_LEAVING);
    krex_stop_at("mark-leaving");
    if (!krex_client_send(KREX_WIRE_LEAVE, (uint32_t)mark, submissions(), NULL, NULL))
        krex_store_release(&krex_process.block->marks[mark], KREX_MARK_FREE);
    mark = -1;
}

/* How many marks this thread is in: an interpreter that is interrupted around krex_region_begin asks
 * whether that has happened. */
EXPORT int krex_region_depth(void) {
    forget_parents_mark();
    return (int)depth;
}

/* Enters a region: the C and C++ way, which waits to the end. */
EXPORT void krex_region_enter(const char *name) {
    if (krex_region_begin(name))
        while (krex_region_wait(0.1) == 1) {
        }
}
