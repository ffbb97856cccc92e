/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the drain share. All of it is used under krex_cl_lock.
 *
 * Work behind a user event that nobody has set waits on this process's own host: it is not
 * outstanding. To tell it from the rest, each unset user event has a bit, and each command that was
 * enqueued while one existed has a mask: the user events it is behind, directly or through other
 * commands. Setting a user event takes its bit out of every mask; a command whose mask is empty is
 * outstanding until it is complete. Where anything is in doubt the mask has too few bits, never too
 * many: then the drain waits for what cannot come, and the region says so.
 *
 *   userevent.c   the unset user events and their bits
 *   pending.c     the commands that are watched one by one
 *   command.c     what an enqueue adds to them
 *   drain.c       the queues, and the drain
 */
#ifndef KREX_OPENCL_DRAIN_H
#define KREX_OPENCL_DRAIN_H

#include <pthread.h>

#include "api.h"

/* Held for the length of a query to the driver, or of a marker's enqueue, at most. Never in a call of
 * the program's own to the driver, which may call the program back. */
extern pthread_mutex_t krex_cl_lock;

/* drain.c: a live queue of the program, which holds a reference as long as the node is listed. */
struct krex_cl_queue {
    struct krex_cl_queue *next;
    cl_command_queue queue;
    cl_uint references; /* the program's own; the driver's events hold further ones */
    cl_event marker;    /* of the drain under way */
    /* Masks: of what was enqueued; of what will be; and, not 0 while each command is watched: */
    uint64_t any, holds, watched;
};
struct krex_cl_queue *krex_cl_queue_find(cl_command_queue queue);
/* Without a flush. NULL: the queue takes none. */
cl_event krex_cl_put_marker(cl_command_queue queue);
bool krex_cl_complete(cl_event event);
/* Takes over one reference to the event. NULL, or no memory: never drained again. */
void krex_cl_watch(cl_event event, uint64_t behind);
void krex_cl_clear(uint64_t bits);

/* userevent.c */
void krex_cl_user_event_list(cl_event event);
uint64_t krex_cl_user_event_bit(cl_event event);
/* A time, in user events made so far. */
uint64_t krex_cl_user_event_time(void);
/* Those of `bits` that still stand for the same unset user event as at that time. */
uint64_t krex_cl_user_events_still(uint64_t bits, uint64_t time);
/* Unlists those that were set past the hooks, and those that nobody can set any more and nothing is
 * behind. Returns their bits; gone[bit] is to be released, and not under the lock. */
enum { KREX_CL_USER_EVENTS = 64 };
uint64_t krex_cl_user_events_settle(uint64_t used, cl_event gone[]);
/* Unlists one; its bit. */
uint64_t krex_cl_user_event_forget(cl_event event);
void krex_cl_user_events_start_over(void);

/* pending.c */
struct krex_cl_pending;
bool krex_cl_pending_add(cl_event event, uint64_t behind);
uint64_t krex_cl_pending_behind(cl_event event);
uint64_t krex_cl_pending_used(void);
void krex_cl_pending_clear(uint64_t bits);
/* Many complete ones may be listed. */
bool krex_cl_pending_crowded(void);
/* Moves the complete ones to *gone. True: no outstanding one is left. */
bool krex_cl_pending_sweep(struct krex_cl_pending **gone);
/* Not under the lock: the last reference to an event may take others, and callbacks, with it. */
void krex_cl_pending_free(struct krex_cl_pending *gone);
void krex_cl_pending_start_over(void);

#endif
