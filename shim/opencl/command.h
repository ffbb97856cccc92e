/* SPDX-License-Identifier: Apache-2.0
 *
 * What the hooks of enqueues and of user events tell the drain. While no user event is unset, which is
 * nearly always, an enqueue pays two relaxed loads.
 */
#ifndef KREX_OPENCL_COMMAND_H
#define KREX_OPENCL_COMMAND_H

#include "../atomic.h"
#include "api.h"

/* How a command stands to what is already in its queue, where the queue itself keeps no order. */
enum krex_cl_order {
    KREX_CL_LISTED = 0,       /* behind its wait list */
    KREX_CL_ALL = 1 << 0,     /* behind everything before it, if the wait list is empty */
    KREX_CL_BARRIER = 1 << 1, /* everything after it is behind it */
    KREX_CL_ALL_BARRIER = KREX_CL_ALL | KREX_CL_BARRIER,
};

/* Only `watched` is filled in while no user event is unset. */
struct krex_cl_command {
    bool watched; /* a user event was unset when it began */
    bool in_order;
    enum krex_cl_order order;
    cl_command_queue queue;
    cl_event *event; /* where the driver puts its event */
    cl_event own;    /* if the program asked for none */
    uint64_t behind;
    uint64_t began; /* in the time of user events */
};

/* The unset user events. Written under the drain's lock, read by every enqueue. */
extern uint64_t krex_cl_unset;

cl_event *krex_cl_command_watch(struct krex_cl_command *c, enum krex_cl_order order,
                                cl_command_queue queue, cl_uint num_events,
                                const cl_event *wait_list, cl_event *event);
void krex_cl_command_made(struct krex_cl_command *c);
void krex_cl_command_made_meanwhile(cl_command_queue queue, const cl_event *event);
void krex_cl_user_event_made(cl_event event);
/* Before it is set: from then on what is behind it is outstanding. */
void krex_cl_user_event_setting(cl_event event);

/* Both between krex_gate_enter and krex_gate_leave: when the drain begins, no enqueue is under way.
 * Returns what to give to the driver in place of `event`. */
static inline cl_event *krex_cl_command_begin(struct krex_cl_command *c, enum krex_cl_order order,
                                              cl_command_queue queue, cl_uint num_events,
                                              const cl_event *wait_list, cl_event *event) {
    c->watched = false;
    if (__builtin_expect(krex_load_relaxed(&krex_cl_unset) == 0, 1))
        return event;
    return krex_cl_command_watch(c, order, queue, num_events, wait_list, event);
}

/* The second look: a user event may have been made, and the queue have come to be watched, while this
 * command was on its way. If the marker (command.c) is before this command, then the driver's own lock
 * on the queue, which both took, makes the earlier store to krex_cl_unset visible here. */
static inline void krex_cl_command_end(struct krex_cl_command *c, cl_command_queue queue,
                                       const cl_event *event, bool made) {
    if (__builtin_expect(c->watched, 0) && made)
        krex_cl_command_made(c);
    else if (__builtin_expect(krex_load_relaxed(&krex_cl_unset) != 0, 0) && made)
        krex_cl_command_made_meanwhile(queue, event);
}

#endif
