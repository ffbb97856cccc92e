/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks: krex_region_begin asks for exclusivity, krex_region_wait waits for it in slices (so that
 * an interpreter can look at its signals in between), krex_region_end gives it back.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"
#include "client.h"
#include "futex.h"
#include "gate.h"
#include "limit.h"
#include "log.h"
#include "region.h"
#include "stop.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void krex_region_end(void);

static __thread uint32_t depth; /* marks are re-entrant per thread: the outermost one counts */
static __thread int mark;       /* the outermost one's index in the block; -1: it has none */
static __thread uint64_t began; /* the generation of the process that began it */

static uint32_t marked_itself;
static uint64_t may_mark_itself;
/* By mark: the region that it is, or was last. A region's name is made of its number, its hold, and its
 * mark. No pair lasts for so many holds that it would meet the same number of one again. */
static uint64_t regions[KREX_MARKS];
enum { HOLDS = 256, NAMES = HOLDS * KREX_MARKS };
#define HANDED_DOWN (UINT64_C(1) << 63)
static bool joins[KREX_MARKS]; /* it was requested in a hold that was handed down */
static uint64_t own_epoch;     /* of the last hold that a mark of ours began */

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

const char *krex_region_item(const char **rest, size_t *length) {
    const char *item = *rest ? *rest : getenv("KREX_REGION");
    if (!item || !*item)
        return NULL;
    const char *end = strchrnul(item, ',');
    *length = (size_t)(end - item);
    *rest = *end ? end + 1 : end;
    return item;
}

bool krex_region_has(const char *wanted) {
    size_t length = 0;
    for (const char *rest = NULL, *item; (item = krex_region_item(&rest, &length));)
        if (length == strlen(wanted) && !memcmp(item, wanted, length))
            return true;
    return false;
}

bool krex_region_disabled(void) { return krex_region_has("none"); }

bool krex_region_auto(void) {
    const char *rest = NULL;
    size_t length = 0;
    return !krex_region_item(&rest, &length) || krex_region_has("auto");
}

bool krex_region_explicit(void) { return krex_load_relaxed(&marked_itself); }

bool krex_region_expected(void) { return krex_load_relaxed(&may_mark_itself); }

/* The program may have marks of its own: it has what it takes. */
EXPORT void krex_region_expect(void) {
    krex_add_seq_cst(&may_mark_itself, 1);
    if (!krex_region_has("events"))
        krex_arm_not_by_events();
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

/* The hold that this process was handed by an ancestor, or by the whole command: the gate is closed, and
 * not for us. Our own may stay a little after our mark has left, and is none of those. */
static uint64_t handed_down(void) {
    uint64_t epoch = krex_load_acquire(&krex_process.board->gate);
    bool passes = epoch & 1 && krex_load_relaxed(&krex_process.block->pass) == epoch;
    return passes && epoch != krex_load_relaxed(&own_epoch) ? HANDED_DOWN | epoch : 0;
}

/* Its audit begins at nothing; nobody else adds to it, or reads it, before it is requested. */
static void name_region(int i) {
    static uint64_t number;
    memset(&krex_process.block->audits[i], 0, sizeof krex_process.block->audits[i]);
    krex_store_release(&regions[i], krex_add_seq_cst(&number, 1) * NAMES + (uint64_t)i);
}

int krex_mark_request(const char *name, const char *marker) {
    int i = !krex_region_disabled() && krex_client_ready("") ? take_mark() : -1;
    if (i < 0)
        return -1;
    name_region(i);
    joins[i] = handed_down() != 0;
    if (krex_client_send(KREX_WIRE_ENTER, (uint32_t)i, (uint64_t)syscall(SYS_gettid), name,
                         marker)) {
        krex_stop_at("mark-requested");
        return i;
    }
    krex_store_release(&krex_process.block->marks[i], KREX_MARK_FREE);
    return -1;
}

static void name_next_hold(int i) {
    uint64_t region = krex_load_relaxed(&regions[i]), hold = region / KREX_MARKS % HOLDS;
    uint64_t next = hold % (HOLDS - 1) + 1; /* never that of the first again */
    krex_store_release(&regions[i], region - region % NAMES + next * KREX_MARKS + (uint64_t)i);
}

bool krex_mark_request_again(int i, const char *name, const char *marker) {
    uint32_t *state = &krex_process.block->marks[i];
    if (!krex_cas_u32(state, KREX_MARK_YIELDED, KREX_MARK_REQUESTED))
        return false;
    name_next_hold(i);
    joins[i] = handed_down() != 0;
    uint64_t tid = (uint64_t)syscall(SYS_gettid);
    if (krex_client_send(KREX_WIRE_ENTER, (uint32_t)i, tid, name, marker))
        return true;
    krex_store_release(state, KREX_MARK_YIELDED);
    return false;
}

static void mark_itself(void) {
    if (krex_cas_u32(&marked_itself, 0, 1))
        krex_arm_not_by_events();
}

/* Returns 1 when a wait is needed, 0 when none is: nested, switched off, or no controller. */
EXPORT int krex_region_begin(const char *name) {
    forget_parents_mark();
    if (depth++)
        return 0;
    mark_itself();
    mark = krex_mark_request(name, "");
    began = krex_process.generation;
    if (mark < 0)
        return 0;
    pthread_once(&exit_key_once, make_exit_key);
    if (exit_key_made)
        pthread_setspecific(exit_key, &depth);
    return 1;
}

/* Waits at most timeout_s seconds. 1: still waiting; 0: granted as exclusive; 2: granted as not
 * exclusive, or the controller is gone. */
EXPORT int krex_region_wait(double timeout_s) {
    return mark < 0 || began != krex_process.generation ? 2 : krex_mark_wait(mark, timeout_s);
}

int krex_mark_wait(int i, double timeout_s) {
    uint64_t generation = krex_load_acquire(&krex_process.generation);
    uint32_t *state = &krex_process.block->marks[i];
    if (krex_load_acquire(state) == KREX_MARK_REQUESTED)
        krex_futex_wait(state, KREX_MARK_REQUESTED, (uint64_t)(timeout_s * 1e9));
    if (krex_load_acquire(&krex_process.generation) != generation)
        return 2; /* a child, forked by a signal handler meanwhile: it is its parent that waits */
    uint32_t now = krex_load_acquire(state);
    if (now == KREX_MARK_EXCLUSIVE) {
        if (!joins[i])
            krex_store_relaxed(&own_epoch, krex_load_acquire(&krex_process.board->gate));
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

void krex_mark_await(int i) {
    uint64_t generation = krex_load_acquire(&krex_process.generation);
    uint64_t started = krex_now_ns(), limit_ns = krex_limit_ns();
    while (krex_mark_wait(i, 0.1) == 1) {
    }
    if (krex_load_acquire(&krex_process.generation) == generation)
        krex_limit_waited(krex_process.block, limit_ns, krex_now_ns() - started);
}

/* Counted here, because the program goes on before the controller has read that its region ended. */
uint64_t krex_submissions(void) {
    struct krex_block *b = krex_process.block;
    uint64_t n = krex_load_relaxed(&b->overflow_count);
    for (uint32_t i = 0; i < krex_load_acquire(&b->words_used); i++)
        n += krex_load_relaxed(&b->words[i].count);
    return n;
}

static void tell_leaving(int i) {
    krex_stop_at("mark-leaving");
    if (!krex_client_send(KREX_WIRE_LEAVE, (uint32_t)i, krex_submissions(), NULL, NULL))
        krex_store_release(&krex_process.block->marks[i], KREX_MARK_FREE);
}

void krex_mark_leave(int i) {
    krex_store_release(&krex_process.block->marks[i], KREX_MARK_LEAVING);
    tell_leaving(i);
}

void krex_mark_leave_from(int i, uint32_t from) {
    if (krex_cas_u32(&krex_process.block->marks[i], from, KREX_MARK_LEAVING))
        tell_leaving(i);
}

EXPORT void krex_region_end(void) {
    forget_parents_mark();
    if (!depth)
        return;
    depth--;
    if (depth || mark < 0)
        return;
    krex_mark_leave(mark);
    mark = -1;
}

static bool is_granted(int i) {
    uint32_t state = krex_load_acquire(&krex_process.block->marks[i]);
    return state == KREX_MARK_EXCLUSIVE || state == KREX_MARK_SHARED || state == KREX_MARK_CLOSING;
}

uint64_t krex_region_name(int i) { return krex_load_relaxed(&regions[i]); }

uint64_t krex_region_now(void) {
    if (!krex_load_acquire(&krex_process.generation))
        return 0;
    forget_parents_mark();
    if (depth && mark >= 0 && is_granted(mark))
        return regions[mark];
    for (int i = 0; i < KREX_MARKS; i++)
        if (is_granted(i))
            return krex_load_relaxed(&regions[i]);
    return handed_down();
}

struct krex_audit *krex_region_audit(uint64_t region) {
    if (!region || region & HANDED_DOWN || !krex_load_acquire(&krex_process.generation))
        return NULL;
    int i = (int)(region % KREX_MARKS);
    uint32_t state = krex_load_acquire(&krex_process.block->marks[i]);
    bool ended = state == KREX_MARK_FREE || state == KREX_MARK_LEAVING;
    bool same = krex_load_relaxed(&regions[i]) / NAMES == region / NAMES;
    return ended || !same ? NULL : &krex_process.block->audits[i];
}

bool krex_region_came_back(uint64_t region) {
    uint64_t now = krex_load_relaxed(&regions[region % KREX_MARKS]);
    return now / NAMES == region / NAMES && now % NAMES >= KREX_MARKS;
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
        krex_mark_await(mark);
}
