/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "events.h"
#include "gate.h"
#include "region.h"
#include "streams.h"

/* Guards the table of events, and what is known of the last record. Nobody waits with it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool busy; /* this thread holds it: a signal handler's events go unseen */

static uint64_t records; /* how many timed ones there were */
static uint32_t unread;
static struct {
    const void *event, *stream;
} last;

static uint64_t no_work;               /* submissions that are none */
static __thread uint64_t no_work_here; /* of this thread */
static uint32_t disturbances;
static uint32_t launched; /* whether anything ever was */
static uint32_t judged;   /* the first pair */

/* No handle: a launch to whatever stream is a change. */
static const char nobody;
__thread const void *krex_audit_stream = &nobody;

static void start_over_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    busy = false;
    unread = launched = judged = 0;
    krex_events_start_over();
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_over_in_child); }

static bool take_lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (busy)
        return false;
    pthread_once(&once, prepare);
    busy = true;
    pthread_mutex_lock(&lock);
    return true;
}

static void give_lock(void) {
    pthread_mutex_unlock(&lock);
    busy = false;
}

static void count(uint32_t *counter, uint32_t n) {
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void krex_audit_disturbed(void) { count(&disturbances, 1); }

void krex_audit_no_work(void) {
    __atomic_fetch_add(&no_work, 1, __ATOMIC_RELAXED);
    no_work_here++;
}

void krex_audit_stream_changed(const void *stream) {
    krex_audit_stream = stream;
    krex_store_relaxed(&launched, 1);
    if (stream != KREX_AUDIT_NO_STREAM)
        krex_streams_launched(stream, krex_load_relaxed(&records));
}

/* --- events --- */

static void settle(struct krex_event *e) {
    if (e->unread)
        unread--;
    e->unread = false;
}

/* What was known under that handle is gone: of a command, or with its context. */
static struct krex_event *put(const void *event) {
    struct krex_event *old = krex_event_find(event);
    if (old)
        settle(old);
    if (!old && krex_events_are_full()) {
        krex_events_start_over();
        unread = 0;
    }
    return krex_event_put(event);
}

void krex_audit_event_made(const void *event, bool timing) {
    int saved = errno;
    if (timing)
        krex_arm_events();
    if (take_lock()) {
        struct krex_event *e = put(event);
        if (e)
            e->timing = timing;
        give_lock();
    }
    errno = saved;
}

void krex_audit_event_gone(const void *event) {
    int saved = errno;
    if (take_lock()) {
        struct krex_event *e = krex_event_find(event);
        if (e)
            settle(e);
        krex_event_drop(event);
        give_lock();
    }
    errno = saved;
}

bool krex_audit_is_timed(const void *event) {
    if (!take_lock())
        return false;
    struct krex_event *e = krex_event_find(event);
    bool timed = e && e->timing;
    give_lock();
    return timed;
}

/* A thread without a word of its own is counted with others. */
static struct krex_stamp stamp(void) {
    const struct krex_word *word = krex_thread.word;
    krex_store_relaxed(&records, records + 1); /* who launches reads it without the lock */
    return (struct krex_stamp){
        .number = records,
        .region = krex_region_now(),
        .submitted = krex_submissions() - krex_load_relaxed(&no_work),
        .submitted_own = word ? krex_load_relaxed(&word->count) - no_work_here : 0,
        .thread = word,
        .disturbed = krex_load_relaxed(&disturbances),
        .after_launch = krex_load_relaxed(&launched),
    };
}

/* The mark's, if it has not ended, and the process's. */
static void count_event(uint64_t region) {
    struct krex_audit *audit = krex_region_audit(region);
    count(&krex_process.block->audit.events, 1);
    if (audit)
        count(&audit->events, 1);
}

static void note_timed(struct krex_event *e, const void *stream) {
    if (!e->unread)
        unread++;
    e->unread = true;
    last.event = e->handle;
    last.stream = stream;
    count_event(e->stamp.region);
}

void krex_audit_recorded(const void *event, const void *stream,
                         bool (*orders)(const void *stream, const void *other)) {
    int saved = errno;
    uint64_t uncovered = krex_streams_uncovered(stream, orders);
    krex_streams_recorded(stream, event);
    krex_audit_stream = &nobody;
    if (krex_load_relaxed(&krex_process.generation) && take_lock()) {
        struct krex_event *e = krex_event_find(event);
        if (e && e->timing) {
            e->stamp = stamp();
            e->stamp.uncovered = uncovered;
            note_timed(e, stream);
        }
        give_lock();
    }
    errno = saved;
}

void krex_audit_joined(const void *stream, const void *event) {
    krex_streams_joined(stream, event);
}

void krex_audit_command(const void *event, const void *stream) {
    int saved = errno;
    if (krex_load_relaxed(&krex_process.generation) && take_lock()) {
        struct krex_event *e = put(event);
        if (e) {
            e->timing = true;
            e->stamp = stamp();
            note_timed(e, stream);
        }
        krex_store_relaxed(&launched, 1);
        give_lock();
    }
    errno = saved;
}

/* --- pairs --- */

struct pair {
    struct krex_stamp start, stop;
    uint64_t ns;
    bool is_command; /* it is one command, and not what is between two events */
    bool is_last;    /* nothing was timed after it */
};

/* Only the first pair of a process can be cold. */
static bool is_cold(const struct pair *p) {
    return krex_cas_u32(&judged, 0, 1) && !p->start.after_launch;
}

static void count_shortest(struct krex_audit *a, uint64_t ns, uint64_t launches) {
    if (a->shortest_ns && a->shortest_ns <= ns)
        return;
    krex_store_relaxed(&a->shortest_ns, ns ? ns : 1);
    krex_store_relaxed(&a->shortest_launches,
                       launches < UINT32_MAX ? (uint32_t)launches : UINT32_MAX);
}

static void judge_between(struct krex_audit *a, const struct pair *p, uint64_t between) {
    uint64_t own = p->stop.submitted_own - p->start.submitted_own;
    if (!between)
        count(&a->empty, 1);
    if (p->stop.uncovered > p->start.number)
        count(&a->uncovered, 1);
    if (p->stop.thread && p->stop.thread == p->start.thread && between > own)
        count(&a->by_others, 1);
    if (p->is_last && krex_submissions() - krex_load_relaxed(&no_work) > p->stop.submitted)
        count(&a->after_stop, 1);
    if (p->stop.disturbed != p->start.disturbed)
        count(&a->disturbed, 1);
}

/* Under the lock. */
static void judge(struct krex_audit *a, const struct pair *p, bool cold) {
    uint64_t between = p->is_command ? 1 : p->stop.submitted - p->start.submitted;
    __atomic_fetch_add(&a->timed_ns, p->ns, __ATOMIC_RELAXED);
    count_shortest(a, p->ns, between);
    if (p->ns < KREX_NOISE_FLOOR_NS)
        count(&a->below_floor, 1);
    if (cold)
        count(&a->cold, 1);
    if (!p->is_command)
        judge_between(a, p, between);
    if (p->start.region && p->start.region == p->stop.region)
        count(&a->pairs_inside, 1);
    __atomic_fetch_add(&a->pairs, 1, __ATOMIC_RELEASE); /* pairs with krex_block_audit */
}

static void count_split(uint64_t region) {
    struct krex_audit *mark = krex_region_audit(region);
    if (mark)
        count(&mark->split, 1);
}

static void judge_pair(const struct pair *p) {
    bool cold = is_cold(p);
    judge(&krex_process.block->audit, p, cold);
    if (p->start.region != p->stop.region) {
        count_split(p->start.region);
        count_split(p->stop.region);
        return;
    }
    struct krex_audit *mark = krex_region_audit(p->start.region);
    if (mark)
        judge(mark, p, cold);
}

uint32_t krex_audit_unread(void) { return krex_load_relaxed(&unread); }

/* What the program reads again is no further pair. */
static bool begin_pair(struct pair *p, const void *start, const void *stop) {
    struct krex_event *from = krex_event_find(start), *to = krex_event_find(stop);
    if (!from || !to || !from->stamp.number || !to->stamp.number || to->read == to->stamp.number)
        return false;
    to->read = to->stamp.number;
    p->start = from->stamp;
    p->stop = to->stamp;
    p->is_command = from == to;
    p->is_last = to->stamp.number == records;
    settle(from);
    settle(to);
    return true;
}

void krex_audit_read(const void *start, const void *stop, uint64_t ns) {
    int saved = errno;
    bool all = false;
    if (krex_load_relaxed(&krex_process.generation) && take_lock()) {
        struct pair p = {.ns = ns};
        if (begin_pair(&p, start, stop))
            judge_pair(&p);
        all = !unread;
        give_lock();
    }
    if (all)
        krex_arm_idle(true);
    errno = saved;
}

void krex_audit_synchronised_slow(const void *stream, const void *event) {
    krex_arm_synchronised();
    if (!(krex_load_relaxed(&krex_arm_state) & KREX_BY_EVENTS))
        return;
    bool covers = !stream && !event;
    if (take_lock()) {
        covers = covers || (stream ? stream == last.stream : event == last.event);
        give_lock();
    }
    if (covers)
        krex_arm_idle(false);
}
