/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread ends: its word is free for another, and what it submitted stays known to the block.
 */
#include "check.h"

static void *submit_twice(void *word) {
    submit();
    submit();
    *(struct krex_word **)word = krex_thread.word;
    return NULL;
}

static void word_is_reused(void) {
    struct krex_board *board = attached_board();
    struct krex_block *block = &board->block[0];
    struct krex_word *first, *second;
    /* GIVEN a thread that submitted WHEN it ends THEN its word is free, and the block still dirty */
    finish(start(submit_twice, &first));
    CHECK(first->tid == 0 && !(first->submit & 1));
    CHECK(!krex_block_clean(board, 0) && krex_block_submissions(board, 0) == 2);
    block->drained = 2;
    CHECK(krex_block_clean(board, 0));
    /* WHEN another thread submits THEN it takes the same word, and adds to the count */
    finish(start(submit_twice, &second));
    CHECK(second == first && block->words_used == 1);
    CHECK(krex_block_submissions(board, 0) == 4);
}

static void *exit_inside(void *word) {
    CHECK(krex_heavy_enter() && krex_gate_enter());
    *(struct krex_word **)word = krex_thread.word;
    pthread_exit(NULL);
}

static void ends_inside_calls(void) {
    struct krex_board *board = attached_board();
    struct krex_word *word;
    /* GIVEN a thread that ends inside calls THEN nothing stays announced, and the block is dirty */
    finish(start(exit_inside, &word));
    CHECK(word->tid == 0);
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0 && krex_in_flight(board, HEAVY, 0, 0) == 0);
    CHECK(!krex_block_clean(board, 0));
    /* and the next owner of the word is no nested caller */
    shut(board, HEAVY);
    struct caller next;
    caller_start_waiting(&next, HEAVY);
    unshut(board, HEAVY);
    caller_finish(&next);
    CHECK(next.word == word);
}

static void *cancelled(void *in) {
    CHECK(krex_gate_enter());
    krex_store_release((uint32_t *)in, 1);
    for (;;)
        pause();
    return NULL;
}

static void cancelled_inside_a_call(void) {
    struct krex_board *board = attached_board();
    uint32_t in = 0;
    pthread_t thread = start(cancelled, &in);
    EVENTUALLY(krex_load_acquire(&in));
    CHECK(pthread_cancel(thread) == 0);
    finish(thread);
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0 && board->block[0].words[0].tid == 0);
}

/* Made after the gate's own key, this one's destructor runs after the word was given back. */
static pthread_key_t late;

static void submit_late(void *value) {
    (void)value;
    CHECK(!krex_thread.word);
    bool mine = krex_gate_enter();
    CHECK(mine && krex_thread.word && krex_thread.word->submit & 1);
    krex_gate_leave(mine);
}

static void *leave_destructor(void *unused) {
    submit();
    CHECK(pthread_setspecific(late, &late) == 0);
    return unused;
}

static void destructor_submits(void) {
    struct krex_board *board = attached_board();
    CHECK(pthread_key_create(&late, submit_late) == 0);
    /* GIVEN destructors that submit WHEN more threads end than there are words THEN none is lost */
    for (int i = 0; i < KREX_WORDS + 2; i++)
        finish(start(leave_destructor, NULL));
    CHECK(krex_block_submissions(board, 0) == 2 * (uint64_t)(KREX_WORDS + 2));
    CHECK(board->block[0].words_used == 1 && board->block[0].words[0].tid == 0);
    CHECK(board->block[0].overflow_count == 0);
}

/* Leaves from inside a call, and without its destructors. */
static void *vanish(void *unused) {
    CHECK(krex_heavy_enter() && krex_gate_enter() && krex_thread.word);
    syscall(SYS_exit, 0);
    return unused;
}

static void vanished_threads(void) {
    struct krex_board *board = attached_board();
    struct caller next;
    for (int i = 0; i < KREX_WORDS; i++)
        finish(start(vanish, NULL));
    /* GIVEN threads that are gone with every word announced THEN the closer counts them; WHEN words
     * are needed THEN theirs are taken */
    CHECK(krex_in_flight(board, GATE, 0, 0) == KREX_WORDS);
    CHECK(krex_in_flight(board, HEAVY, 0, 0) == KREX_WORDS);
    caller_start_inside(&next, GATE);
    CHECK(next.mine && next.word == &board->block[0].words[0]);
    CHECK(krex_in_flight(board, GATE, 0, 0) == KREX_WORDS);
    caller_finish(&next);
    CHECK(krex_in_flight(board, GATE, 0, 0) == KREX_WORDS - 1);
    CHECK(krex_in_flight(board, HEAVY, 0, 0) == KREX_WORDS - 1);
    CHECK(!krex_block_clean(board, 0) && board->block[0].overflow_count == 0);
}

/* A closer that looks while threads end must not find the block clean, nor lose a submission. */
static uint32_t submitted;

static void *submit_and_end(void *unused) {
    submit();
    krex_store_release(&submitted, 1);
    return unused;
}

static void looked_at_while_ending(void) {
    struct krex_board *board = attached_board();
    struct caller others[40]; /* so that the look takes a while */
    for (int i = 0; i < 40; i++)
        caller_start_inside(&others[i], HEAVY);
    for (int n = 1; n <= rounds(3000); n++) {
        submitted = 0;
        pthread_t thread = start(submit_and_end, NULL);
        while (!krex_load_acquire(&submitted))
            sched_yield();
        /* Until its word is free, and once after that. */
        for (int ended = 0, looks = 0; ended < 2 || looks < 100; looks++) {
            ended += krex_load_acquire(&board->block[0].words[40].tid) == 0;
            CHECK(!krex_block_clean(board, 0));
            CHECK(krex_block_submissions(board, 0) == (uint64_t)n);
        }
        finish(thread);
        krex_store_release(&board->block[0].drained, epoch_of(board) + 1);
        CHECK(krex_block_clean(board, 0));
        shut(board, GATE);
        unshut(board, GATE);
    }
    for (int i = 0; i < 40; i++)
        caller_finish(&others[i]);
}

int main(void) {
    word_is_reused();
    ends_inside_calls();
    cancelled_inside_a_call();
    destructor_submits();
    if (!is_variant("address") && !is_variant("thread")) /* they would miss the threads */
        vanished_threads();
    looked_at_while_ending();
    return 0;
}
