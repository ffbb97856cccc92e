/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooked calls inside hooked calls: the driver's own, or a layer's above it. The outermost counts.
 */
#include "check.h"

static struct krex_board *board;
static struct krex_word *word;

static void given(void) {
    board = attached_board();
    word = &board->block[0].words[0];
    submit();
    run_heavy();
}

static void submission_in_submission(void) {
    given();
    /* GIVEN a call past the gate WHEN the gate closes and the driver submits from inside THEN it
     * passes, and the closer waits for the outermost call to return */
    bool outer = krex_gate_enter();
    shut(board, GATE);
    bool inner = krex_gate_enter();
    CHECK(outer && !inner);
    CHECK(in_flight(board, GATE) == 1);
    krex_gate_leave(inner);
    CHECK(in_flight(board, GATE) == 1);
    krex_gate_leave(outer);
    CHECK(in_flight(board, GATE) == 0);
    CHECK(krex_block_submissions(board, 0) == 2); /* with the one of given() */
    CHECK(word->submit == 2 << 1);
}

static void heavy_in_submission(void) {
    given();
    bool outer = krex_gate_enter();
    shut(board, HEAVY);
    bool inner = krex_heavy_enter();
    CHECK(outer && !inner && !(word->heavy & 1));
    CHECK(krex_in_flight(board, HEAVY, 3, -1) == 0 && krex_in_flight(board, GATE, 3, -1) == 1);
    krex_heavy_leave(inner);
    krex_gate_leave(outer);
    CHECK(krex_in_flight(board, GATE, 3, -1) == 0);
}

static void submission_in_heavy(void) {
    given();
    board->block[0].drained = 2;
    CHECK(krex_block_clean(board, 0));
    shut(board, GATE);
    unshut(board, GATE);
    /* GIVEN a heavy call WHEN the driver submits from inside THEN that is on record: the block is
     * dirty, although a heavy call alone leaves it clean */
    bool outer = krex_heavy_enter();
    CHECK(outer && krex_block_clean(board, 0));
    bool inner = krex_gate_enter();
    CHECK(inner && word->submit == (4 << 1 | 1) && word->heavy == (2 << 1 | 1));
    krex_gate_leave(inner);
    CHECK(word->heavy == (2 << 1 | 1));
    krex_heavy_leave(outer);
    CHECK(word->heavy == 2 << 1 && !krex_block_clean(board, 0));
}

static void heavy_in_heavy(void) {
    given();
    bool outer = krex_heavy_enter();
    shut(board, HEAVY);
    bool inner = krex_heavy_enter();
    CHECK(outer && !inner && in_flight(board, HEAVY) == 1);
    krex_heavy_leave(inner);
    CHECK(in_flight(board, HEAVY) == 1);
    krex_heavy_leave(outer);
    CHECK(in_flight(board, HEAVY) == 0);
}

/* What is nested is a matter of the thread: another thread's call is its own. */
static void beside_another_thread(void) {
    struct caller other;
    given();
    bool mine = krex_gate_enter();
    caller_start_inside(&other, GATE);
    CHECK(mine && other.mine && other.word != word);
    CHECK(krex_in_flight(board, GATE, 3, -1) == 2);
    krex_gate_leave(mine);
    caller_finish(&other);
}

int main(void) {
    submission_in_submission();
    heavy_in_submission();
    submission_in_heavy();
    heavy_in_heavy();
    beside_another_thread();
    return 0;
}
