/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a gate: by the controller, or by a waiter in place of a controller whose lease ran out.
 */
#ifndef KREX_REOPEN_H
#define KREX_REOPEN_H

#include "atomic.h"
#include "board.h"
#include "futex.h"

/* Opens `gate`, one of the board's two, if it is still closed under `epoch`, and wakes its waiters.
 *
 * The heavy gate opens after the gate. So whoever opens it opens the gate first: a controller whose
 * lease ran out sees at the gate that it lost its epoch. Where the hold had closed the heavy gate
 * alone, the gate skips that epoch: the two are at the same one again, and a controller that resumes
 * in the middle of its handshake fails its next swap. Dying between the two leaves the heavy gate
 * closed, which the next waiter or the controller opens; the other order would leave the two at
 * different epochs for good. */
static inline bool krex_gate_reopen(struct krex_board *board, uint64_t *gate, uint64_t epoch) {
    if (gate == &board->heavy_gate && (krex_cas_u64(&board->gate, epoch - 1, epoch + 1) ||
                                       krex_cas_u64(&board->gate, epoch, epoch + 1)))
        krex_futex_wake_all(&board->gate);
    bool opened = krex_cas_u64(gate, epoch, epoch + 1);
    krex_futex_wake_all(gate);
    return opened;
}

#endif
