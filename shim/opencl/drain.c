/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains this process's command queues: a marker in each, polled. Markers put no work on the device.
 *
 * Work behind a user event that nobody has set keeps a marker from completing: such a process is
 * reported as not drained when the deadline passes, never as drained.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../vendor.h"
#include "api.h"

struct node {
    struct node *next;
    cl_command_queue queue; /* of a live queue */
    cl_event marker; /* of the drain under way, or of a queue that was released with work in it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *queues;   /* the program's live queues */
static struct node *released; /* queue-less: what was in them may still run */

static void push(struct node **list, cl_command_queue queue, cl_event marker) {
    struct node *n = malloc(sizeof *n);
    if (!n)
        return;
    *n = (struct node){*list, queue, marker};
    *list = n;
}

static cl_event put_marker(cl_command_queue queue) {
    cl_event marker = NULL;
    if (KREX_REAL(queue, clEnqueueMarkerWithWaitList)(queue, 0, NULL, &marker) != CL_SUCCESS)
        return NULL;
    KREX_REAL(queue, clFlush)(queue);
    return marker;
}

/* A negative status is an error, and final. */
static bool complete(cl_event marker) {
    cl_int status = 0;
    if (!marker)
        return true;
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

void krex_cl_queue_made(cl_command_queue queue) {
    pthread_mutex_lock(&lock);
    sweep_released();
    push(&queues, queue, NULL);
    pthread_mutex_unlock(&lock);
}

/* Before the program's release. The last one takes the queue off the list, but leaves a marker to
 * watch: a released queue still finishes its work. */
void krex_cl_queue_releasing(cl_command_queue queue) {
    cl_uint references = 0;
    pthread_mutex_lock(&lock);
    KREX_REAL(queue, clGetCommandQueueInfo)
    (queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, NULL);
    for (struct node **n = &queues; *n && references <= 1; n = &(*n)->next) {
        struct node *gone = *n;
        if (gone->queue != queue)
            continue;
        *n = gone->next;
        drop(&gone->marker);
        free(gone);
        push(&released, NULL, put_marker(queue));
        break;
    }
    pthread_mutex_unlock(&lock);
}

void krex_vendor_drain_begin(void) {
    pthread_mutex_lock(&lock);
    for (struct node *n = queues; n; n = n->next) {
        drop(&n->marker);
        n->marker = put_marker(n->queue);
    }
    pthread_mutex_unlock(&lock);
}

bool krex_vendor_drain_done(void) {
    bool done = true;
    pthread_mutex_lock(&lock);
    sweep_released();
    for (struct node *n = queues; n && done; n = n->next)
        done = complete(n->marker);
    done = done && !released;
    pthread_mutex_unlock(&lock);
    return done;
}

void krex_vendor_drain_end(void) {
    pthread_mutex_lock(&lock);
    for (struct node *n = queues; n; n = n->next)
        drop(&n->marker);
    pthread_mutex_unlock(&lock);
}
