/* SPDX-License-Identifier: Apache-2.0
 *
 * What an enqueue adds while a user event is unset. Nothing is locked across the driver's call, which
 * may call the program back; so of commands that several threads enqueue at once nobody knows the
 * order in the queue. The rule that holds in any order: the mask of a command is taken before the
 * driver's call, and laid on the queue after it. So a mask only ever has what is surely in front.
 *
 * A queue is watched from its first command with a mask on. Right before that one goes a marker, for
 * all that came earlier; from the marker on its commands are watched one by one, by an event each.
 * The queue is called watched before the marker is put, so no command falls between the two.
 */
#include "command.h"

#include "drain.h"

static bool keeps_order(cl_command_queue queue) {
    cl_command_queue_properties properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    KREX_REAL(queue, clGetCommandQueueInfo)
    (queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    return !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

static uint64_t behind_list(cl_uint num_events, const cl_event *wait_list) {
    uint64_t behind = 0;
    for (cl_uint i = 0; wait_list && i < num_events; i++)
        behind |= krex_cl_user_event_bit(wait_list[i]) | krex_cl_pending_behind(wait_list[i]);
    return behind;
}

static void watch(cl_event event, uint64_t behind) {
    pthread_mutex_lock(&krex_cl_lock);
    krex_cl_watch(event, behind);
    pthread_mutex_unlock(&krex_cl_lock);
}

cl_event *krex_cl_command_watch(struct krex_cl_command *c, enum krex_cl_order order,
                                cl_command_queue queue, cl_uint num_events,
                                const cl_event *wait_list, cl_event *event) {
    *c = (struct krex_cl_command){.watched = true, .order = order, .queue = queue};
    c->in_order = keeps_order(queue);
    c->event = event ? event : &c->own;
    pthread_mutex_lock(&krex_cl_lock);
    struct krex_cl_queue *q = krex_cl_queue_find(queue);
    c->began = krex_cl_user_event_time();
    c->behind = behind_list(num_events, wait_list);
    if (q)
        c->behind |= q->holds | (order & KREX_CL_ALL && !num_events ? q->any : 0);
    bool stops = q && c->behind && !q->watched;
    if (q)
        q->watched |= c->behind;
    pthread_mutex_unlock(&krex_cl_lock);
    if (stops)
        watch(krex_cl_put_marker(queue), 0);
    return c->event;
}

/* It was not watched; its queue may be by now. */
void krex_cl_command_made_meanwhile(cl_command_queue queue, const cl_event *event) {
    pthread_mutex_lock(&krex_cl_lock);
    struct krex_cl_queue *q = krex_cl_queue_find(queue);
    bool watched = q && q->watched;
    pthread_mutex_unlock(&krex_cl_lock);
    if (!watched)
        return;
    if (event)
        KREX_REAL(*event, clRetainEvent)(*event);
    watch(event ? *event : krex_cl_put_marker(queue), 0);
}

static void add(struct krex_cl_command *c) {
    struct krex_cl_queue *q = krex_cl_queue_find(c->queue);
    uint64_t behind = krex_cl_user_events_still(c->behind, c->began);
    if (q) {
        q->any |= behind;
        if (c->in_order || c->order & KREX_CL_BARRIER)
            q->holds |= behind;
    }
    if (!behind && !(q && q->watched))
        return;
    if (!*c->event && c->order & KREX_CL_BARRIER)
        return; /* the kinds that have no event, and are no work */
    if (!c->own)
        KREX_REAL(*c->event, clRetainEvent)(*c->event);
    krex_cl_watch(*c->event, behind);
    c->own = NULL;
}

void krex_cl_command_made(struct krex_cl_command *c) {
    struct krex_cl_pending *gone = NULL;
    pthread_mutex_lock(&krex_cl_lock);
    if (krex_cl_pending_crowded())
        krex_cl_pending_sweep(&gone);
    add(c);
    pthread_mutex_unlock(&krex_cl_lock);
    krex_cl_pending_free(gone);
    if (c->own)
        KREX_REAL(c->own, clReleaseEvent)(c->own);
}

void krex_cl_user_event_made(cl_event event) {
    pthread_mutex_lock(&krex_cl_lock);
    krex_cl_user_event_list(event);
    pthread_mutex_unlock(&krex_cl_lock);
}

void krex_cl_user_event_setting(cl_event event) {
    if (!krex_load_relaxed(&krex_cl_unset))
        return;
    pthread_mutex_lock(&krex_cl_lock);
    krex_cl_clear(krex_cl_user_event_forget(event));
    pthread_mutex_unlock(&krex_cl_lock);
}
