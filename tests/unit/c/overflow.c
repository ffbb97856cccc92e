/* SPDX-License-Identifier: Apache-2.0
 *
 * More threads than words: KREX_WORDS of them have one, the others share the block's counters.
 */
#include "check.h"

enum { EXTRA = 3 };

/* Threads that hold every word, idle until told. */
static struct caller owners[KREX_WORDS];

static void fill_words(void) {
    for (int i = 0; i < KREX_WORDS; i++)
        caller_start_inside(&owners[i], GATE);
}

static void free_words(void) {
    for (int i = 0; i < KREX_WORDS; i++)
        caller_finish(&owners[i]);
}

/* Who has a word is known by its number; with all taken, this thread has none. */
static void named_by_their_words(struct krex_board *board) {
    int32_t tids[KREX_WORDS];
    CHECK(krex_block_tids(board, 0, tids) == KREX_WORDS);
    for (int i = 0; i < KREX_WORDS; i++) {
        CHECK(tids[i] == owners[i].word->tid && tids[i] != (int32_t)syscall(SYS_gettid));
        for (int before = 0; before < i; before++)
            CHECK(tids[before] != tids[i]);
    }
    int32_t one = tids[1];
    owners[1].word->tid = 0; /* as one that ended leaves it */
    CHECK(krex_block_tids(board, 0, tids) == KREX_WORDS - 1 && tids[1] != one);
    owners[1].word->tid = one;
    board->block[0].words_used = UINT32_MAX; /* a client may write anything */
    CHECK(krex_block_tids(board, 0, tids) == KREX_WORDS);
    board->block[0].words_used = KREX_WORDS;
}

static void counted_beside_the_words(void) {
    struct krex_board *board = attached_board();
    struct caller extra[EXTRA];
    uint64_t epoch;
    /* GIVEN all words taken WHEN further threads submit THEN they are in the counter */
    fill_words();
    for (int i = 0; i < EXTRA; i++) {
        caller_start_inside(&extra[i], GATE);
        CHECK(extra[i].mine && !extra[i].word);
    }
    CHECK(board->block[0].overflow_announced == EXTRA);
    named_by_their_words(board);
    /* WHEN the gate closes THEN the closer waits for words and counter alike */
    epoch = shut(board, GATE);
    CHECK(in_flight(board, GATE) == KREX_WORDS + EXTRA);
    CHECK(krex_in_flight(board, GATE, epoch, 0) == KREX_WORDS + EXTRA);
    CHECK(!krex_block_clean(board, 0));
    free_words();
    CHECK(in_flight(board, GATE) == EXTRA);
    CHECK(!krex_block_clean(board, 0));
    for (int i = 0; i < EXTRA; i++)
        caller_finish(&extra[i]);
    CHECK(in_flight(board, GATE) == 0);
    CHECK(krex_block_submissions(board, 0) == KREX_WORDS + EXTRA);
    /* WHEN all is drained THEN the block is clean; the counter's epoch counts as a word's does */
    CHECK(!krex_block_clean(board, 0));
    krex_store_release(&board->block[0].drained, 2);
    CHECK(krex_block_clean(board, 0));
    krex_store_release(&board->block[0].drained, 1);
    for (int i = 0; i < KREX_WORDS; i++)
        board->block[0].words[i].submit = 0;
    CHECK(!krex_block_clean(board, 0));
}

/* The closed gates stop a thread without a word, and nobody waits for it while it waits. */
static void stopped_like_others(int kind) {
    struct krex_board *board = attached_board();
    struct krex_block *block = &board->block[0];
    uint64_t *counter = kind == HEAVY ? &block->overflow_heavy : &block->overflow_announced;
    struct caller extra;
    fill_words();
    shut(board, kind);
    caller_start_waiting(&extra, kind);
    CHECK(krex_load_acquire(counter) == 0);
    CHECK(krex_load_acquire(&block->overflow_epoch) == 0); /* it has submitted nothing yet */
    unshut(board, kind);
    EVENTUALLY(caller_is_in(&extra));
    CHECK(extra.mine && !extra.word && krex_load_acquire(counter) == 1);
    shut(board, kind);
    CHECK(in_flight(board, kind) == (kind == HEAVY ? 1 : KREX_WORDS + 1));
    caller_finish(&extra);
    CHECK(krex_load_acquire(counter) == 0);
    unshut(board, kind);
    free_words();
}

static void holder_passes(int kind) {
    struct krex_board *board = attached_board();
    struct caller extra;
    fill_words();
    krex_block_pass(board, 0, 3);
    shut(board, kind);
    /* GIVEN the pass of a closed gate WHEN a thread without a word calls THEN it passes */
    caller_start_inside(&extra, kind);
    CHECK(extra.mine && !extra.word);
    CHECK(in_flight(board, kind) == 0); /* nobody's closer waits for the holder */
    CHECK(krex_in_flight(board, kind, 3, 0) == (kind == HEAVY ? 1 : KREX_WORDS + 1));
    caller_finish(&extra);
    free_words();
}

static void *nest(void *board_) {
    struct krex_block *block = &((struct krex_board *)board_)->block[0];
    CHECK(krex_gate_enter() && !krex_thread.word);
    CHECK(!krex_gate_enter() && !krex_heavy_enter());
    CHECK(block->overflow_announced == 1 && block->overflow_heavy == 0);
    krex_heavy_leave(false);
    krex_gate_leave(false);
    CHECK(block->overflow_announced == 1);
    krex_gate_leave(true);
    CHECK(krex_heavy_enter() && !krex_heavy_enter());
    CHECK(krex_gate_enter()); /* its epoch must be on record */
    CHECK(block->overflow_announced == 1 && block->overflow_heavy == 1);
    krex_gate_leave(true);
    krex_heavy_leave(true);
    CHECK(block->overflow_announced == 0 && block->overflow_heavy == 0);
    CHECK(krex_block_submissions(board_, 0) == 2);
    return NULL;
}

static void nested_without_a_word(void) {
    struct krex_board *board = attached_board();
    fill_words();
    finish(start(nest, board));
    free_words();
}

static void *exit_inside(void *kind) {
    CHECK(*(int *)kind == HEAVY ? krex_heavy_enter() : krex_gate_enter());
    pthread_exit(NULL);
}

/* A thread without a word that ends inside a call takes its count along. */
static void ends_inside(int kind) {
    struct krex_board *board = attached_board();
    fill_words();
    finish(start(exit_inside, &kind));
    CHECK(board->block[0].overflow_announced == 0 && board->block[0].overflow_heavy == 0);
    free_words();
}

int main(void) {
    counted_beside_the_words();
    for (int kind = GATE; kind <= HEAVY; kind++) {
        stopped_like_others(kind);
        holder_passes(kind);
        ends_inside(kind);
    }
    nested_without_a_word();
    return 0;
}
