/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains this process's command queues: a marker in each, polled. Markers put no work on the device.
 *
 * Never reported as drained, so that the deadline passes and the region says so: a process with work
 * behind a user event that nobody has set, with a queue that takes no marker, or one that is exiting.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../vendor.h"
#include "api.h"

struct node {
    struct node *next;
    cl_command_queue queue; /* of a live queue */
    cl_uint references;     /* the program's own; the driver's events hold further ones */
    cl_event marker; /* of the drain under way, or of a queue that was released with work in it */
};

/* Held for the length of a driver call at most. A queue may be used only under it, while it is on the
 * list: the program's last reference takes it off. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct node *queues;   /* the program's live queues */
static struct node *released; /* queue-less: what was in them may still run */
static bool unknown_work;     /* something could not be put on a list, or under a marker */
static bool exiting;          /* the driver may be torn down any moment */

/* A forked child: the queues are its parent's, and so may have been the lock. A child by raw clone
 * keeps both; no runtime works in one. */
static void start_over(void) {
    pthread_mutex_init(&lock, NULL);
    queues = released = NULL;
    unknown_work = false;
}

static void stop(void) {
    pthread_mutex_lock(&lock);
    exiting = true;
    pthread_mutex_unlock(&lock);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, start_over);
    atexit(stop);
}

static void push(struct node **list, cl_command_queue queue, cl_event marker) {
    struct node *n = malloc(sizeof *n);
    if (n) {
        *n = (struct node){*list, queue, 1, marker};
        *list = n;
    } else {
        unknown_work = true;
    }
}

/* NULL: the queue takes none. Drivers before version 1.2 have only the older call. */
static cl_event put_marker(cl_command_queue queue) {
    cl_event marker = NULL;
    if (KREX_REAL(queue, clEnqueueMarkerWithWaitList))
        KREX_REAL(queue, clEnqueueMarkerWithWaitList)(queue, 0, NULL, &marker);
    else
        KREX_REAL(queue, clEnqueueMarker)(queue, &marker);
    KREX_REAL(queue, clFlush)(queue);
    return marker;
}

/* A negative status is an error, and final. */
static bool complete(cl_event marker) {
    cl_int status = 1;
    if (!marker)
        return false;
    KREX_REAL(marker, clGetEventInfo)
    (marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status <= 0;
}

static void drop(cl_event *marker) {
    if (*marker)
        KREX_REAL(*marker, clReleaseEvent)(*marker);
    *marker = NULL;
}

static void sweep_released(void) {
    for (struct node **n = &released; *n;) {
        struct node *done = *n;
        if (!complete(done->marker)) {
            n = &done->next;
            continue;
        }
        *n = done->next;
        drop(&done->marker);
        free(done);
    }
}

static struct node **find(cl_command_queue queue) {
    struct node **n = &queues;
    while (*n && (*n)->queue != queue)
        n = &(*n)->next;
    return n;
}

void krex_cl_queue_made(cl_command_queue queue) {
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    sweep_released();
    push(&queues, queue, NULL);
    pthread_mutex_unlock(&lock);
}

void krex_cl_queue_retained(cl_command_queue queue) {
    pthread_mutex_lock(&lock);
    struct node *n = *find(queue);
    if (n)
        n->references++;
    pthread_mutex_unlock(&lock);
}

/* Before the program's release. The last one takes the queue off the list, but leaves a marker to
 * watch: a released queue still finishes its work. */
void krex_cl_queue_releasing(cl_command_queue queue) {
    pthread_mutex_lock(&lock);
    struct node **place = find(queue), *n = *place;
    if (n)
        n->references--;
    if (n && !n->references) {
        cl_event marker = exiting ? NULL : put_marker(queue);
        *place = n->next;
        drop(&n->marker);
        free(n);
        if (marker)
            push(&released, NULL, marker);
        else
            unknown_work = true;
    }
    pthread_mutex_unlock(&lock);
}

void krex_vendor_drain_begin(void) {
    pthread_mutex_lock(&lock);
    for (struct node *n = queues; n && !exiting; n = n->next) {
        drop(&n->marker);
        n->marker = put_marker(n->queue);
    }
    pthread_mutex_unlock(&lock);
}

bool krex_vendor_drain_done(void) {
    bool done = false;
    pthread_mutex_lock(&lock);
    if (!exiting) {
        sweep_released();
        done = !released && !unknown_work;
        for (struct node *n = queues; n && done; n = n->next)
            done = complete(n->marker);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

void krex_vendor_drain_end(void) {
    pthread_mutex_lock(&lock);
    for (struct node *n = queues; n && !exiting; n = n->next)
        drop(&n->marker);
    pthread_mutex_unlock(&lock);
}
