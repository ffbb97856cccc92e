/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the events of this process, by their handles. The caller has the lock (audit.c).
 */
#ifndef KREX_EVENTS_H
#define KREX_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* How things stood when an event was recorded. */
struct krex_stamp {
    uint64_t number; /* of the record, in this process; 0: it never was */
    uint64_t region;
    uint64_t submitted;     /* by the process, and not to order others */
    uint64_t submitted_own; /* the same by the thread that recorded it */
    uint64_t
        uncovered; /* the number that the last launch which it is not behind came after; 0: none */
    const void *thread; /* NULL: nobody knows how much it submits itself */
    uint32_t disturbed;
    bool after_launch; /* there was one in this process */
};

struct krex_event {
    const void *handle; /* NULL: the place is free */
    bool timing;
    bool unread;   /* it was recorded, and not read since */
    uint64_t read; /* the record that was read as the stop of a pair */
    struct krex_stamp stamp;
};

/* NULL: it is not known. The place is good until the next call. */
struct krex_event *krex_event_find(const void *handle);
/* The place for a handle, new or not, with nothing in it; NULL: there is no memory. */
struct krex_event *krex_event_put(const void *handle);
void krex_event_drop(const void *handle);
/* Of commands nobody says when they are gone; by far most handles come again. Where there are too many
 * all the same, the caller forgets all: pairs whose events were there are then not judged. */
bool krex_events_are_full(void);
/* Forgets all. */
void krex_events_start_over(void);

#endif
