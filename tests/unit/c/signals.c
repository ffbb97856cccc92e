/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that submit: while their thread waits at a gate, and at any moment, in a storm. Handlers
 * that do not come back: siglongjmp out of a call. (signal_steps.c takes every instruction in turn.)
 */
#include <setjmp.h>

#include "check.h"

static struct krex_board *board;
static uint64_t granted;        /* the closer saw nothing in flight under this epoch */
static uint64_t outermost;      /* submissions that were announced */
static uint32_t handled, ended; /* handlers run; the storm is over */

static void driver(void) { CHECK(krex_load_acquire(&granted) == 0); }

static void submit_counted(void) {
    bool mine = krex_gate_enter();
    driver();
    krex_gate_leave(mine);
    krex_add_seq_cst(&outermost, mine);
}

static void on_signal(int number) {
    (void)number;
    krex_add_seq_cst(&handled, 1);
    submit_counted();
}

static void given(void) {
    board = attached_board();
    granted = outermost = 0;
    handled = ended = 0;
}

static void in_the_wait(void) {
    struct caller caller;
    given();
    shut(board, GATE);
    /* GIVEN a thread that waits WHEN signals come THEN handlers run at once, and wait as well */
    caller_start_waiting(&caller, GATE);
    CHECK(pthread_kill(caller.thread, SIGUSR1) == 0);
    EVENTUALLY(krex_load_acquire(&handled) == 1);
    EVENTUALLY(is_asleep(caller.tid));
    CHECK(pthread_kill(caller.thread, SIGUSR2) == 0);
    EVENTUALLY(krex_load_acquire(&handled) == 2);
    CHECK(in_flight(board, GATE) == 0 && krex_load_acquire(&outermost) == 0);
    CHECK(!caller_is_in(&caller));
    /* WHEN the gate opens THEN all three go, each counted */
    unshut(board, GATE);
    caller_finish(&caller);
    CHECK(caller.mine && outermost == 2);
    CHECK(krex_block_submissions(board, 0) == 3);
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0);
}

static uint32_t began;

static void *submit_all_along(void *unused) {
    while (!krex_load_acquire(&ended)) {
        submit_counted();
        krex_store_release(&began, 1);
    }
    return unused;
}

static void *send_all_along(void *thread) {
    while (!krex_load_acquire(&ended)) {
        CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR1) == 0);
        CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR2) == 0);
        usleep(20);
    }
    return NULL;
}

/* One hold. False: given up, because a handler waits on top of a call that is announced. */
static bool hold(void) {
    uint64_t epoch = shut(board, GATE);
    uint64_t limit = krex_now_ns() + 20000000;
    bool alone = false;
    while (!alone && krex_now_ns() < limit)
        alone = krex_in_flight(board, GATE, epoch, -1) == 0;
    if (alone) {
        CHECK(!krex_block_clean(board, 0)); /* it never rests, and nobody drains */
        krex_store_release(&granted, epoch);
        usleep(50);
        krex_store_release(&granted, 0);
    }
    unshut(board, GATE);
    return alone;
}

static void storm(void) {
    int holds = 0;
    pthread_t submitter, sender;
    given();
    began = 0;
    submitter = start(submit_all_along, NULL);
    EVENTUALLY(krex_load_acquire(&began));
    sender = start(send_all_along, &submitter);
    /* GIVEN a thread that submits, and handlers of it that do WHEN the gate closes and opens THEN
     * nothing passes after a grant */
    uint64_t end = krex_now_ns() + 1000000000;
    while (krex_now_ns() < end || !holds || !krex_load_acquire(&handled))
        holds += hold();
    krex_store_release(&ended, 1);
    finish(sender);
    finish(submitter);
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0);
    CHECK(krex_block_submissions(board, 0) == outermost);
    CHECK(board->block[0].words_used == 1); /* no handler took a word of its own */
}

/* The first call of a thread under an attachment, over and over. */
static void *join_all_along(void *unused) {
    struct krex_word *words = board->block[0].words;
    uint64_t end = krex_now_ns() + 500000000;
    submit_counted();
    krex_store_release(&began, 1);
    while (krex_now_ns() < end || krex_load_acquire(&handled) < 100) {
        words[0].tid = 0; /* as if a new block's */
        CHECK(krex_gate_attach(board, 0) == 0);
        submit_counted();
        CHECK(words[0].tid == own_tid() && board->block[0].words_used == 1);
    }
    krex_store_release(&ended, 1);
    return unused;
}

/* GIVEN a thread that joins while handlers submit THEN it and they have one word, not one each */
static void joins_in_the_storm(void) {
    given();
    began = 0;
    pthread_t joiner = start(join_all_along, NULL);
    EVENTUALLY(krex_load_acquire(&began));
    send_all_along(&joiner);
    finish(joiner);
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0);
    CHECK(krex_block_submissions(board, 0) == outermost);
}

static void *submit_once(void *unused) {
    submit_counted();
    return unused;
}

/* Signals from a thread's beginning to beyond its end: nothing of it stays announced. */
static void ends_in_the_storm(void) {
    given();
    for (int i = 0; i < rounds(400); i++) {
        pthread_t thread = start(submit_once, NULL);
        for (int n = 0; n < 8; n++)
            CHECK(pthread_kill(thread, n & 1 ? SIGUSR1 : SIGUSR2) == 0);
        finish(thread);
        CHECK(krex_in_flight(board, GATE, 0, 0) == 0);
    }
    CHECK(krex_block_submissions(board, 0) == outermost);
}

static sigjmp_buf out;

static void jump(int number) {
    (void)number;
    siglongjmp(out, 1);
}

/* Leaves a call at `kind` from inside the driver. */
static void jump_out_of_call(int kind) {
    if (!sigsetjmp(out, 1)) {
        CHECK(kind == HEAVY ? krex_heavy_enter() : krex_gate_enter());
        CHECK(raise(SIGALRM) == 0);
        FAIL("came back");
    }
}

static void *jump_out(void *kind) {
    jump_out_of_call(*(int *)kind);
    /* Its later calls are nested in the one that it never returned from: not stopped, so the closer
     * must never believe that it is alone. */
    shut(board, *(int *)kind);
    CHECK(in_flight(board, *(int *)kind) == 1);
    CHECK(!(*(int *)kind == HEAVY ? krex_heavy_enter() : krex_gate_enter()));
    CHECK(in_flight(board, *(int *)kind) == 1);
    CHECK(*(int *)kind == HEAVY || !krex_block_clean(board, 0));
    unshut(board, *(int *)kind);
    return NULL;
}

static void jumps_out_of_a_call(int kind) {
    given();
    finish(start(jump_out, &kind));
    /* The thread's end is the end of it. */
    shut(board, kind);
    CHECK(in_flight(board, kind) == 0);
}

/* A holder's thread jumps out of its own region: it spoils the regions of others, not only drains. */
static void holder_jumps_out(void) {
    given();
    krex_block_pass(board, 0, 3);
    shut(board, GATE);
    jump_out_of_call(GATE);
    CHECK(krex_in_flight(board, GATE, 3, 0) == 1); /* its release finds work at the end */
    krex_block_pass(board, 0, 0);
    unshut(board, GATE);
    shut(board, GATE);
    CHECK(in_flight(board, GATE) == 1);
}

static void *jump_out_of_wait(void *tid) {
    if (!sigsetjmp(out, 1)) {
        krex_store_release((int32_t *)tid, own_tid());
        (void)krex_gate_enter();
        FAIL("passed");
    }
    CHECK(in_flight(board, GATE) == 0 && !(krex_thread.word->submit & 1));
    krex_store_release((int32_t *)tid, 0);
    submit_counted(); /* stopped like any other */
    return NULL;
}

static void jumps_out_of_the_wait(void) {
    int32_t tid = 0;
    given();
    shut(board, GATE);
    pthread_t thread = start(jump_out_of_wait, &tid);
    EVENTUALLY(is_asleep(krex_load_acquire(&tid)));
    int32_t waiter = tid;
    CHECK(pthread_kill(thread, SIGALRM) == 0);
    EVENTUALLY(krex_load_acquire(&tid) == 0);
    EVENTUALLY(is_asleep(waiter));
    CHECK(outermost == 0);
    unshut(board, GATE);
    finish(thread);
    CHECK(outermost == 1 && krex_in_flight(board, GATE, 0, 0) == 0);
}

int main(void) {
    if (is_variant("thread"))
        return skip("the sanitizer keeps signals back until a time of its own");
    handle(SIGUSR1, on_signal);
    handle(SIGUSR2, on_signal);
    handle(SIGALRM, jump);
    in_the_wait();
    storm();
    joins_in_the_storm();
    ends_in_the_storm();
    jumps_out_of_a_call(GATE);
    jumps_out_of_a_call(HEAVY);
    jumps_out_of_the_wait();
    holder_jumps_out(); /* last: this thread stays announced */
    return 0;
}
