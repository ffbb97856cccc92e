/* SPDX-License-Identifier: Apache-2.0
 *
 * Automatic marks: this process's one mark that nobody wrote into its code, and when it begins.
 *
 * Armed (krex_region_arm, an NVTX range), it begins at the first timing-enabled event, or at the first
 * submission after a synchronisation that followed a submission, whatever comes first; and ends when
 * nobody is armed. What a timing function does before that, its first compile above all, holds no
 * device. Where nobody is armed it begins at the first timing-enabled event, and ends when all timed
 * events are read, or waited for, and no further one follows soon: the controller decides how soon, so
 * a loop is one mark (board.h, KREX_MARK_IDLE). So by KREX_REGION=events; and by default, unless the
 * program has marks of its own.
 *
 * In a process that arms nothing and makes no timing-enabled event, all of this costs a relaxed load
 * where events are recorded, read and waited for, and nothing elsewhere.
 */
#ifndef KREX_ARM_H
#define KREX_ARM_H

#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"

/* What may begin a mark; zero nearly always. */
enum { KREX_ARMED = 1, KREX_BY_EVENTS = 2 };
extern uint32_t krex_arm_state;

/* A timed event is about to be recorded: begins the mark, and waits until it is granted. Before the
 * submission is announced. */
void krex_arm_timed_slow(void);
/* All that was timed has been read, or (not is_read) is known to be complete. */
void krex_arm_idle_slow(bool is_read);
/* The program has waited for the device. */
void krex_arm_synchronised_slow(void);

static inline bool krex_arm_wants_timed(void) {
    return __builtin_expect(krex_load_relaxed(&krex_arm_state) != 0, 0);
}
static inline void krex_arm_timed(void) {
    if (krex_arm_wants_timed())
        krex_arm_timed_slow();
}
static inline void krex_arm_idle(bool is_read) {
    if (__builtin_expect(krex_load_relaxed(&krex_arm_state) & KREX_BY_EVENTS, 0))
        krex_arm_idle_slow(is_read);
}
static inline void krex_arm_synchronised(void) {
    if (__builtin_expect(krex_load_relaxed(&krex_arm_state) & KREX_ARMED, 0))
        krex_arm_synchronised_slow();
}

/* Arming, as often as one likes, by any threads; `marker` is what arms. At once: do not wait for a
 * submission. Where the program has marked something itself, nothing. */
void krex_arm(const char *marker, const char *name);
void krex_arm_at_once(const char *marker, const char *name);
void krex_disarm(void);

/* The process times: what it records for that may begin a mark now. */
void krex_arm_events(void);
/* From now on events begin no mark, and one that they have begun ends: the program marks by itself. */
void krex_arm_not_by_events(void);

#endif
