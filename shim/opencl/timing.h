/* SPDX-License-Identifier: Apache-2.0
 *
 * Timed commands: those with an event, in a queue that profiles. The event is both ends of a pair.
 *
 * Bindings ask for an event of every command, and many a program makes its queues profile and never
 * looks: such would keep the device for all that it does. So by default a program is taken to time once
 * it has read a profile; by KREX_REGION=events from its first timed command on.
 */
#ifndef KREX_OPENCL_TIMING_H
#define KREX_OPENCL_TIMING_H

#include "../audit.h"
#include "api.h"

/* There has been a queue that profiles. */
extern uint32_t krex_cl_profiles;

void krex_cl_queue_times(cl_command_queue queue);
bool krex_cl_is_timed(cl_command_queue queue);

/* A command that asks for an event is about to be submitted. True: it is timed. */
static inline bool krex_cl_timed_begin(cl_command_queue queue, const cl_event *event) {
    if (__builtin_expect(!event || !krex_load_relaxed(&krex_cl_profiles), 1) ||
        !krex_cl_is_timed(queue))
        return false;
    krex_arm_timed();
    return true;
}

static inline void krex_cl_timed_end(bool timed, cl_command_queue queue, const cl_event *event,
                                     bool made) {
    if (timed && made)
        krex_audit_command(*event, queue);
}

#endif
