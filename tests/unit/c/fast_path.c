/* SPDX-License-Identifier: Apache-2.0
 *
 * What a submission and a heavy call do at an open gate, a closed one, and one whose closer is gone.
 */
#include "check.h"

static uint64_t *word_of(struct krex_block *block, int kind) {
    return kind == HEAVY ? &block->words[0].heavy : &block->words[0].submit;
}

static void open_gate_passes(void) {
    struct krex_board *board = attached_board();
    struct krex_block *block = &board->block[0];
    /* GIVEN an open gate WHEN a thread submits THEN it is announced inside, retracted after, counted */
    for (uint64_t n = 1; n <= 3; n++) { /* the first call joins, later ones take the fast path */
        bool mine = krex_gate_enter();
        CHECK(mine);
        CHECK(block->words[0].submit == (2 << 1 | 1));
        CHECK(krex_in_flight(board, GATE, 3, -1) == 1);
        krex_gate_leave(mine);
        CHECK(block->words[0].submit == 2 << 1);
        CHECK(krex_in_flight(board, GATE, 3, -1) == 0);
        CHECK(krex_block_submissions(board, 0) == n);
    }
    CHECK(block->longest_wait_ns == 0);
    CHECK(!krex_block_clean(board, 0));
    bool mine = krex_heavy_enter();
    CHECK(mine && block->words[0].heavy == (2 << 1 | 1));
    krex_heavy_leave(mine);
    CHECK(block->words[0].heavy == 2 << 1);
    CHECK(krex_block_submissions(board, 0) == 3); /* a heavy call is no submission */
}

static void closed_gate_with_own_pass_passes(void) {
    struct krex_board *board = attached_board();
    struct krex_block *block = &board->block[0];
    submit();
    /* GIVEN a gate closed under an epoch that the block has the pass of */
    krex_block_pass(board, 0, 3);
    shut(board, HEAVY);
    shut(board, GATE);
    /* WHEN it submits THEN it passes, and nobody else's closer waits for it */
    bool mine = krex_gate_enter();
    CHECK(mine && block->words[0].submit == (3 << 1 | 1));
    CHECK(in_flight(board, GATE) == 0);
    CHECK(krex_in_flight(board, GATE, 3, 0) == 1); /* but the one who waits for this block does */
    krex_gate_leave(mine);
    mine = krex_heavy_enter();
    CHECK(mine && block->words[0].heavy == (3 << 1 | 1));
    krex_heavy_leave(mine);
    CHECK(krex_block_submissions(board, 0) == 2);
}

static void closed_gate_stops(int kind) {
    struct krex_board *board = attached_board();
    struct krex_block *block = &board->block[0];
    struct caller caller;
    shut(board, kind);
    /* GIVEN a gate closed by somebody else WHEN a thread calls THEN it sleeps, retracted */
    caller_start_waiting(&caller, kind);
    CHECK(!(krex_load_acquire(word_of(block, kind)) & 1));
    CHECK(in_flight(board, kind) == 0);
    /* WHEN an older pass is given THEN it still sleeps */
    krex_block_pass(board, 0, 1);
    usleep(20000);
    CHECK(!caller_is_in(&caller));
    /* WHEN the gate opens THEN it goes on, under the epoch that it found */
    unshut(board, kind);
    EVENTUALLY(caller_is_in(&caller));
    CHECK(caller.mine && krex_load_acquire(word_of(block, kind)) == (4 << 1 | 1));
    CHECK(krex_load_relaxed(&block->longest_wait_ns) >= 20000000);
    caller_finish(&caller);
    CHECK(krex_load_acquire(word_of(block, kind)) == 4 << 1);
}

static void pass_given_to_a_waiter(int kind) {
    struct krex_board *board = attached_board();
    struct caller caller;
    /* GIVEN a thread that waits at a closed gate WHEN its block is given the pass THEN it goes on */
    shut(board, kind);
    caller_start_waiting(&caller, kind);
    krex_block_pass(board, 0, 3);
    caller_finish(&caller);
    CHECK(caller.mine && krex_load_acquire(word_of(&board->block[0], kind)) == 3 << 1);
    CHECK(krex_gate_epoch(board, kind) == 3);
}

static void expired_lease_reopens(void) {
    struct krex_board *board = attached_board();
    struct caller caller;
    /* GIVEN a thread at a closed gate whose controller is alive */
    shut(board, HEAVY);
    shut(board, GATE);
    caller_start_waiting(&caller, GATE);
    /* WHEN the lease runs out THEN the waiter opens the gate, and the controller finds it lost */
    krex_board_lease(board, 0);
    caller_finish(&caller);
    CHECK(epoch_of(board) == 4);
    CHECK(krex_gate_swap(board, GATE, 3) == 0);
    /* WHEN the controller opens the rest THEN both gates are at one epoch */
    CHECK(krex_gate_swap(board, HEAVY, 3) == 1);
    CHECK(krex_gate_epoch(board, HEAVY) == 4);
}

/* A heavy call alone may find the controller gone, with the gate closed or not yet closed. */
static void expired_lease_reopens_both(int gate_was_closed) {
    struct krex_board *board = attached_board();
    shut(board, HEAVY);
    if (gate_was_closed)
        shut(board, GATE);
    krex_board_lease(board, 0);
    run_heavy();
    CHECK(krex_gate_epoch(board, HEAVY) == 4 && epoch_of(board) == 4);
    /* THEN a controller that resumes can neither close under the lost epoch nor find it standing */
    CHECK(krex_gate_swap(board, GATE, 2) == 0);
    CHECK(krex_gate_swap(board, GATE, 3) == 0 && krex_gate_swap(board, HEAVY, 3) == 0);
    /* and the next hold begins as if nothing had been */
    CHECK(krex_gate_swap(board, HEAVY, 4) == 1 && krex_gate_swap(board, GATE, 4) == 1);
}

/* GIVEN a closed gate WHEN the thread that exits frees something THEN it waits for nobody */
static void exit_is_not_held_up(void) {
    struct krex_board *board = attached_board();
    shut(board, HEAVY);
    krex_exiting = 1;
    CHECK(!krex_heavy_enter());
    krex_exiting = 0;
    CHECK(krex_in_flight(board, HEAVY, 3, -1) == 0);
}

static void detached_process_is_left_alone(void) {
    struct krex_board *board = attached_board();
    /* GIVEN a process that detached WHEN it calls at a closed gate THEN nothing stops or counts it */
    shut(board, HEAVY);
    shut(board, GATE);
    krex_gate_detach();
    CHECK(!krex_gate_enter() && !krex_heavy_enter());
    krex_gate_leave(false);
    krex_heavy_leave(false);
    CHECK(krex_block_submissions(board, 0) == 0);
}

int main(void) {
    open_gate_passes();
    closed_gate_with_own_pass_passes();
    for (int kind = GATE; kind <= HEAVY; kind++) {
        closed_gate_stops(kind);
        pass_given_to_a_waiter(kind);
    }
    expired_lease_reopens();
    expired_lease_reopens_both(0);
    expired_lease_reopens_both(1);
    exit_is_not_held_up();
    detached_process_is_left_alone();
    return 0;
}
