/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands under way, and the threads that deal with what becomes of them. All is locked by drv_lock,
 * unless said otherwise.
 */
#ifndef KREX_SIM_WORKER_H
#define KREX_SIM_WORKER_H

#include "driver.h"

struct drv_command {
    struct drv_command *chain;           /* in the table by seq; or the free list */
    struct drv_command *older, *younger; /* of its context */
    struct drv_command *turn_next;       /* in a helper's list */
    struct drv_stream *stream;
    uint64_t seq;
    unsigned references; /* under way; a helper is at it */
    bool waiting;        /* it is in a helper's list */
    struct drv_work work;
};

/* submit.c */
struct drv_command *drv_command_find(uint64_t seq);
void drv_command_unlist(struct drv_command *c); /* not under way any more */
void drv_command_release(struct drv_command *c);
struct drv_command *drv_command_any(void); /* NULL: none is under way */
void drv_submit_done(uint64_t seq);        /* HOST_DONE; not locked */

/* worker.c */
enum drv_result drv_workers_start(void); /* not locked */
/* Waits until something may have ended, with the lock let go, at most a second. */
void drv_wait_change(void);

#endif
