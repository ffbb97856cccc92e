/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains this process's command queues: a marker in each, polled; where a queue has work that is
 * behind an unset user event (drain.h), the commands that are watched one by one. Markers put no work
 * on the device.
 *
 * Never reported as drained, so that the deadline passes and the region says so: a process with a
 * queue that takes no marker, with an event callback that waits at the gate in a thread that the
 * driver needs for what is queued behind (PoCL), or one that is exiting.
 */
#include "drain.h"

#include <stdlib.h>

#include "../gate.h"
#include "command.h"

pthread_mutex_t krex_cl_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct krex_cl_queue *queues;
static bool unknown_work; /* something could not be put on a list, or under a marker */
static bool exiting;      /* the driver may be torn down any moment */
static bool asks;         /* the drain under way is a question; only the drainer's */

/* A forked child: the queues are its parent's, and so may have been the lock. A child by raw clone
 * keeps both; no runtime works in one. */
static void start_over(void) {
    pthread_mutex_init(&krex_cl_lock, NULL);
    queues = NULL;
    unknown_work = false;
    krex_cl_pending_start_over();
    krex_cl_user_events_start_over();
}

static void stop(void) {
    krex_exiting = 1;
    pthread_mutex_lock(&krex_cl_lock);
    exiting = true;
    pthread_mutex_unlock(&krex_cl_lock);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, start_over);
    atexit(stop);
}

/* Drivers before version 1.2 have only the older call; the loader has both. */
cl_event krex_cl_put_marker(cl_command_queue queue) {
    cl_event marker = NULL;
    if (!krex_load_relaxed(&krex_cl_loaders) ||
        queue->dispatch[KREX_INDEX_clEnqueueMarkerWithWaitList])
        KREX_REAL(queue, clEnqueueMarkerWithWaitList)(queue, 0, NULL, &marker);
    else
        KREX_REAL(queue, clEnqueueMarker)(queue, &marker);
    return marker;
}

/* A negative status is an error, and final. */
bool krex_cl_complete(cl_event event) {
    cl_int status = 1;
    if (!event)
        return false;
    KREX_REAL(event, clGetEventInfo)
    (event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status <= 0;
}

void krex_cl_watch(cl_event event, uint64_t behind) {
    if (!event || !krex_cl_pending_add(event, behind))
        unknown_work = true;
}

void krex_cl_clear(uint64_t bits) {
    for (struct krex_cl_queue *q = queues; q; q = q->next) {
        q->any &= ~bits;
        q->holds &= ~bits;
        q->watched &= ~bits;
    }
    krex_cl_pending_clear(bits);
}

static void drop(cl_event *marker) {
    if (*marker)
        KREX_REAL(*marker, clReleaseEvent)(*marker);
    *marker = NULL;
}

static struct krex_cl_queue **find(cl_command_queue queue) {
    struct krex_cl_queue **q = &queues;
    while (*q && (*q)->queue != queue)
        q = &(*q)->next;
    return q;
}

struct krex_cl_queue *krex_cl_queue_find(cl_command_queue queue) { return *find(queue); }

static void sweep(void) {
    struct krex_cl_pending *gone = NULL;
    pthread_mutex_lock(&krex_cl_lock);
    krex_cl_pending_sweep(&gone);
    pthread_mutex_unlock(&krex_cl_lock);
    krex_cl_pending_free(gone);
}

void krex_cl_queue_made(cl_command_queue queue) {
    struct krex_cl_queue *q = malloc(sizeof *q);
    pthread_once(&prepared, prepare);
    sweep();
    pthread_mutex_lock(&krex_cl_lock);
    if (q) {
        *q = (struct krex_cl_queue){.next = queues, .queue = queue, .references = 1};
        queues = q;
    } else {
        unknown_work = true;
    }
    pthread_mutex_unlock(&krex_cl_lock);
}

void krex_cl_queue_retained(cl_command_queue queue) {
    pthread_mutex_lock(&krex_cl_lock);
    struct krex_cl_queue *q = *find(queue);
    if (q)
        q->references++;
    pthread_mutex_unlock(&krex_cl_lock);
}

/* A released queue still finishes its work: what is not watched yet goes under a marker. */
static void leave_watched(struct krex_cl_queue *q) {
    if (q->watched)
        return;
    cl_event marker = exiting ? NULL : krex_cl_put_marker(q->queue);
    if (marker)
        KREX_REAL(q->queue, clFlush)(q->queue);
    krex_cl_watch(marker, 0);
}

/* Before the program's release. The last one takes the queue off the list. */
void krex_cl_queue_releasing(cl_command_queue queue) {
    pthread_mutex_lock(&krex_cl_lock);
    struct krex_cl_queue **place = find(queue), *q = *place;
    if (q)
        q->references--;
    if (q && !q->references) {
        leave_watched(q);
        *place = q->next;
        drop(&q->marker);
        free(q);
    }
    pthread_mutex_unlock(&krex_cl_lock);
}

/* Under the lock. What is behind a user event may begin at any moment, when that is set. */
static uint64_t watched(void) {
    uint64_t used = krex_cl_pending_used();
    for (struct krex_cl_queue *q = queues; q; q = q->next)
        used |= q->watched;
    return used;
}

/* Under the lock. The user events in gone[] are to be released after it. */
static uint64_t settle_user_events(cl_event gone[]) {
    uint64_t used = watched();
    for (struct krex_cl_queue *q = queues; q; q = q->next)
        used |= q->any;
    uint64_t settled = krex_cl_user_events_settle(used, gone);
    krex_cl_clear(settled);
    return settled;
}

static void begin(struct krex_cl_queue *q) {
    drop(&q->marker);
    if (!q->watched)
        q->marker = krex_cl_put_marker(q->queue);
    KREX_REAL(q->queue, clFlush)(q->queue);
}

void krex_cl_drain_begin(bool asks_only) {
    asks = asks_only;
    cl_event gone[KREX_CL_USER_EVENTS];
    uint64_t settled = 0;
    pthread_mutex_lock(&krex_cl_lock);
    if (!exiting)
        settled = settle_user_events(gone);
    for (struct krex_cl_queue *q = queues; q && !exiting; q = q->next)
        begin(q);
    pthread_mutex_unlock(&krex_cl_lock);
    for (int i = 0; i < KREX_CL_USER_EVENTS; i++)
        if (settled >> i & 1)
            drop(&gone[i]);
}

bool krex_cl_drain_done(void) {
    struct krex_cl_pending *gone = NULL;
    pthread_mutex_lock(&krex_cl_lock);
    bool done = !exiting && !unknown_work;
    if (!exiting)
        done = krex_cl_pending_sweep(&gone) && done;
    done = done && !(asks && watched());
    for (struct krex_cl_queue *q = queues; q && done; q = q->next)
        done = q->watched || krex_cl_complete(q->marker);
    pthread_mutex_unlock(&krex_cl_lock);
    krex_cl_pending_free(gone);
    return done;
}

void krex_cl_drain_end(void) {
    pthread_mutex_lock(&krex_cl_lock);
    for (struct krex_cl_queue *q = queues; q && !exiting; q = q->next)
        drop(&q->marker);
    pthread_mutex_unlock(&krex_cl_lock);
}
