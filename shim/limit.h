/* SPDX-License-Identifier: Apache-2.0
 *
 * A time limit of the program's own, by alarm or setitimer, that passes while a call of ours waits. It
 * counts our wait; and an interpreter runs the handler of its signal only once the call has returned. A
 * timer that comes again and again is a clock, and no limit. Those of timer_create are not seen.
 */
#ifndef KREX_LIMIT_H
#define KREX_LIMIT_H

#include <sys/time.h>

#include "atomic.h"
#include "board.h"

/* What waits for less is late by little. */
#define KREX_LIMIT_LEAST_NS UINT64_C(1000000000)

/* In how long the limit passes; 0: there is none. */
static inline uint64_t krex_limit_ns(void) {
    struct itimerval timer;
    if (getitimer(ITIMER_REAL, &timer) || timer.it_interval.tv_sec || timer.it_interval.tv_usec)
        return 0;
    return (uint64_t)timer.it_value.tv_sec * 1000000000 + (uint64_t)timer.it_value.tv_usec * 1000;
}

/* After a wait, before which it was that far. */
static inline void krex_limit_waited(struct krex_block *block, uint64_t limit_ns,
                                     uint64_t waited_ns) {
    if (limit_ns && waited_ns > limit_ns && waited_ns >= KREX_LIMIT_LEAST_NS)
        krex_raise_u64(&block->limit_wait_ns, waited_ns);
}

#endif
