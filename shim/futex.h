/* SPDX-License-Identifier: Apache-2.0
 *
 * Futex and clock calls on shared words. A 64-bit word is waited for by its low half, which is the
 * half at its address on every machine we build for (little-endian).
 */
#ifndef KREX_FUTEX_H
#define KREX_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "futexes wait on the low half");

static inline uint64_t krex_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps while *word == seen, at most timeout_ns. Returns early on a wake-up or a signal. */
static inline void krex_futex_wait(const void *word, uint32_t seen, uint64_t timeout_ns) {
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static inline void krex_futex_wake_all(const void *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

#endif
