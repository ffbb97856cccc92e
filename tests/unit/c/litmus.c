/* SPDX-License-Identifier: Apache-2.0
 *
 * Closing as the controller does it: no submission is missed. See litmus.h.
 */
#include "litmus.h"

static void close_with_barrier(struct krex_board *board, enum litmus_mode mode, uint64_t before) {
    if (mode == TAKE_PASS) {
        krex_block_pass(board, 0, 0);
        krex_gate_fence();
    } else {
        CHECK(krex_gate_swap(board, gate_of(mode), before) == 1);
    }
}

int main(void) {
    int skipped = litmus_means_nothing();
    if (skipped)
        return skipped;
    CHECK(litmus_run(CLOSE_GATE, close_with_barrier, UINT64_MAX, 1.5) == 0);
    CHECK(litmus_run(TAKE_PASS, close_with_barrier, UINT64_MAX, 1.0) == 0);
    CHECK(litmus_run(CLOSE_HEAVY, close_with_barrier, UINT64_MAX, 1.0) == 0);
    return 0;
}
