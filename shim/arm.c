/* SPDX-License-Identifier: Apache-2.0 */
#include "arm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "futex.h"
#include "gate.h"
#include "region.h"

#define EXPORT __attribute__((visibility("default")))

/* A program that has waited for its work, and not read the events yet, is given so long for that. */
#define READ_GRACE_NS UINT64_C(100000000)

/* Nobody is without the wake-up for longer than this. */
#define LOOK_AGAIN_NS UINT64_C(100000000)

uint32_t krex_arm_state;

/* Guards what is below. A mark asks under it, and registers the process if need be; it waits for its
 * grant without it, and `asking` says so: whoever records a timed event then waits with it, a read-out
 * goes by. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t asking;    /* a futex, changed under the lock */
static __thread bool busy; /* this thread is in here: a signal handler above marks nothing */

static struct {
    uint64_t generation; /* of the process that began it: a forked child has no part in it */
    uint64_t region;
    int mark; /* -1: none */
    uint32_t granted;
    bool by_events;
    /* The controller has asked for it, and the program waited, but read nothing yet. */
    bool is_to_end;
} held = {.mark = -1};

static uint32_t armed; /* how many times */
static char marker[16], name[128];
static uint64_t submitted; /* when it was armed first */

static void start_over_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    asking = 0;
    busy = false;
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_over_in_child); }

/* By default they mark where nothing else does. The look comes last: krex_region_expect says so first,
 * and then ends what has begun here. */
static void read_region(void) {
    bool asked = krex_region_has("events");
    if (asked || krex_region_auto())
        __atomic_or_fetch(&krex_arm_state, KREX_BY_EVENTS, __ATOMIC_SEQ_CST);
    if (krex_region_explicit() || (!asked && krex_region_expected()))
        __atomic_and_fetch(&krex_arm_state, ~(uint32_t)KREX_BY_EVENTS, __ATOMIC_SEQ_CST);
}

void krex_arm_events(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_region);
}

static bool take_lock_now(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    if (busy)
        return false;
    busy = true;
    pthread_mutex_lock(&lock);
    return true;
}

static bool take_lock(void) {
    if (!take_lock_now())
        return false;
    while (asking) {
        pthread_mutex_unlock(&lock);
        krex_futex_wait(&asking, 1, LOOK_AGAIN_NS);
        pthread_mutex_lock(&lock);
    }
    return true;
}

static void give_lock(void) {
    pthread_mutex_unlock(&lock);
    busy = false;
}

static bool is_held(void) {
    if (held.mark >= 0 && held.generation != krex_load_acquire(&krex_process.generation))
        held.mark = -1;
    return held.mark >= 0;
}

static uint32_t *state(void) { return &krex_process.block->marks[held.mark]; }

/* Pairs of a mark that had several holds, but for those that it has read, may lie in two of them. */
static void note_unread(void) {
    struct krex_audit *audit = krex_region_audit(held.region);
    bool yielded = krex_load_acquire(state()) == KREX_MARK_YIELDED;
    if (audit && (yielded || krex_region_came_back(held.region)))
        __atomic_fetch_add(&audit->split, krex_audit_unread(), __ATOMIC_RELAXED);
}

/* The word may be another mark's by now if the controller has ended ours. */
static void leave(void) {
    static const uint32_t states[] = {KREX_MARK_EXCLUSIVE, KREX_MARK_SHARED, KREX_MARK_IDLE,
                                      KREX_MARK_CLOSING, KREX_MARK_YIELDED};
    note_unread();
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (krex_region_audit(held.region))
            krex_mark_leave_from(held.mark, states[i]);
    held.mark = -1;
}

/* The longest lately. */
static void note_gap(struct krex_audit *audit) {
    uint64_t now = krex_now_ns(), since = audit->idle_since_ns, usual = audit->gap_ns;
    uint64_t gap = now > since ? now - since : 0;
    krex_store_relaxed(&audit->gap_ns, gap > usual ? gap : usual - (usual - gap) / 8);
}

/* Goes on with a mark that was idle. False: the controller has ended it meanwhile, and by now the word
 * may be another mark's, which is never idle. One that is to end does, whoever reads its events. */
static bool go_on(void) {
    struct krex_audit *audit = krex_region_audit(held.region);
    if (held.is_to_end)
        krex_mark_leave_from(held.mark, KREX_MARK_IDLE);
    else if (audit && krex_cas_u32(state(), KREX_MARK_IDLE, held.granted))
        note_gap(audit);
    return audit && krex_region_audit(held.region) == audit;
}

/* Under the lock, which is given back meanwhile. False: a child, forked by a signal handler in there. */
static bool await_grant(int mark) {
    uint64_t generation = krex_load_acquire(&krex_process.generation);
    asking = 1;
    pthread_mutex_unlock(&lock);
    krex_mark_await(mark);
    pthread_mutex_lock(&lock);
    asking = 0;
    krex_futex_wake_all(&asking);
    return krex_load_acquire(&krex_process.generation) == generation;
}

static void begin(const char *by, const char *what, bool by_events) {
    int mark = krex_mark_request(what, by);
    if (mark < 0 || !await_grant(mark))
        return;
    held.mark = mark;
    held.by_events = by_events;
    held.is_to_end = false;
    held.generation = krex_process.generation;
    held.granted = krex_load_acquire(state());
    held.region = krex_region_name(mark);
    if (by_events && !(krex_load_acquire(&krex_arm_state) & KREX_BY_EVENTS))
        leave(); /* the program has begun to mark by itself meanwhile */
}

/* Under the lock. Asks for the device anew if the controller has given it to others meanwhile. */
static void come_back(void) {
    if (krex_mark_request_again(held.mark, name, marker) && await_grant(held.mark))
        held.granted = krex_load_acquire(state());
}

/* Under the lock. Who is armed has its own record, whatever events have marked until then. */
static void acquire(void) {
    bool by_events = !armed;
    if (is_held() && !go_on())
        held.mark = -1;
    if (is_held() && held.by_events && !by_events)
        leave();
    if (krex_region_explicit())
        return;
    if (is_held()) {
        come_back();
        return;
    }
    if (by_events)
        begin("events", "", true);
    else
        begin(marker, name, false);
}

void krex_arm_timed_slow(void) {
    int saved = errno;
    if (take_lock()) {
        acquire();
        give_lock();
    }
    errno = saved;
}

/* The time first: pairs with the controller's look at a mark that is idle. One that is to end leaves
 * when all is read; if the program has only waited, the read-out is likely to be next. */
static void become_idle(bool is_read) {
    struct krex_audit *audit = krex_region_audit(held.region);
    if (!audit || !held.by_events)
        return;
    krex_store_release(&audit->idle_since_ns, krex_now_ns() + (is_read ? 0 : READ_GRACE_NS));
    if (krex_cas_u32(state(), held.granted, KREX_MARK_IDLE))
        return;
    if (is_read)
        krex_mark_leave_from(held.mark, KREX_MARK_CLOSING);
    else if (krex_cas_u32(state(), KREX_MARK_CLOSING, KREX_MARK_IDLE))
        held.is_to_end = true;
}

void krex_arm_idle_slow(bool is_read) {
    int saved = errno;
    if (take_lock_now()) {
        if (is_held())
            become_idle(is_read);
        give_lock();
    }
    errno = saved;
}

void krex_arm_not_by_events(void) {
    int saved = errno;
    __atomic_and_fetch(&krex_arm_state, ~(uint32_t)KREX_BY_EVENTS, __ATOMIC_SEQ_CST);
    if (take_lock_now()) {
        if (is_held() && held.by_events)
            leave();
        give_lock();
    }
    errno = saved;
}

/* --- arming --- */

void krex_arm(const char *by, const char *what) {
    int saved = errno;
    if (!take_lock())
        return;
    if (!armed++) {
        snprintf(marker, sizeof marker, "%s", by);
        snprintf(name, sizeof name, "%s", what ? what : "");
        uint64_t so_far = krex_process.generation ? krex_submissions() : 0;
        krex_store_relaxed(&submitted, so_far);
        if (!krex_region_disabled())
            __atomic_or_fetch(&krex_arm_state, KREX_ARMED, __ATOMIC_RELAXED);
    }
    give_lock();
    errno = saved;
}

void krex_arm_at_once(const char *by, const char *what) {
    krex_arm(by, what);
    krex_arm_timed_slow();
}

void krex_disarm(void) {
    int saved = errno;
    if (!take_lock())
        return;
    armed -= armed > 0;
    if (!armed) {
        __atomic_and_fetch(&krex_arm_state, ~(uint32_t)KREX_ARMED, __ATOMIC_RELAXED);
        if (is_held() && !held.by_events)
            leave();
    }
    give_lock();
    errno = saved;
}

static void submitting(void) {
    if (krex_load_relaxed(&krex_arm_state) & KREX_ARMED)
        krex_arm_timed_slow();
}

/* What came before was the compile, or the first use; what follows is measured. The next submission of
 * this thread is asked to come by: the others' know nothing of it. */
void krex_arm_synchronised_slow(void) {
    if (!krex_load_acquire(&krex_process.generation) || busy)
        return;
    if (krex_submissions() != krex_load_relaxed(&submitted))
        krex_gate_call_before_next(submitting);
}

/* Marks what follows, until it is disarmed, as one region of that name: but late, see above. */
EXPORT void krex_region_arm(const char *what) { krex_arm("call", what); }
EXPORT void krex_region_disarm(void) { krex_disarm(); }
