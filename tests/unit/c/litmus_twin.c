/* SPDX-License-Identifier: Apache-2.0
 *
 * The litmus test's failing twin: the same without the membarrier. The closer's own swap is a locked
 * instruction; what it lacks is the submitter's fence between announce and gate. If this finds no
 * violation within that time, the litmus test can't find one either. See litmus.h.
 */
#include "litmus.h"

static void close_without_barrier(struct krex_board *board, enum litmus_mode mode,
                                  uint64_t before) {
    if (mode == CLOSE_GATE) {
        CHECK(krex_cas_u64(&board->gate, before, before + 1));
    } else {
        krex_block_pass(board, 0, 0);
        krex_full_fence();
    }
}

int main(void) {
    int skipped = litmus_means_nothing();
    if (skipped)
        return skipped;
    CHECK(litmus_run(CLOSE_GATE, close_without_barrier, 1, 50) > 0);
    CHECK(litmus_run(TAKE_PASS, close_without_barrier, 1, 50) > 0);
    return 0;
}
