/* SPDX-License-Identifier: Apache-2.0
 *
 * The only memory-ordering operations the shim uses; nothing else touches the compiler's atomics.
 *
 * RELEASE: everything this thread did before the store is visible to whoever reads the stored value
 * with ACQUIRE. Neither orders an earlier store against a later load of another word: that needs
 * krex_full_fence(), or a membarrier on the other side (see gate.h).
 */
#ifndef KREX_ATOMIC_H
#define KREX_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define krex_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define krex_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define krex_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define krex_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define krex_add_seq_cst(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)

/* Keeps the compiler, and only the compiler, from moving accesses across. */
#define krex_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define krex_full_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Compare-and-swap, sequentially consistent; false leaves the word as it was. */
static inline bool krex_cas_u64(uint64_t *word, uint64_t expected, uint64_t desired) {
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static inline bool krex_cas_u32(uint32_t *word, uint32_t expected, uint32_t desired) {
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* Raises *word to at least value. */
static inline void krex_raise_u64(uint64_t *word, uint64_t value) {
    uint64_t seen = krex_load_relaxed(word);
    while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, false, __ATOMIC_SEQ_CST,
                                                        __ATOMIC_RELAXED)) {
    }
}

#endif
