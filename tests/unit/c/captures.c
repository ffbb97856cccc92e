/* SPDX-License-Identifier: Apache-2.0
 *
 * Long heavy calls: what lasts from one function to another, as a stream capture does.
 */
#include "check.h"
#include "stop.h"

static struct krex_board *board;
static uint64_t attachment; /* of the long call under way */

static struct krex_block *block(void) { return krex_process.block; }

static void *begin_long(void *unused) {
    (void)unused;
    uint64_t begun = krex_long_begin();
    krex_store_release(&attachment, begun);
    return NULL;
}

static void *end_long(void *unused) {
    (void)unused;
    krex_long_end(attachment);
    return NULL;
}

static void given_one_is_open(void) {
    attachment = krex_long_begin();
    CHECK(attachment && in_flight(board, HEAVY) == 1);
}

static void then_none_is_announced(void) {
    CHECK(block()->overflow_heavy == 0 && block()->heavy_open == 0);
    CHECK(in_flight(board, HEAVY) == 0 && in_flight(board, GATE) == 0);
}

/* GIVEN a call that a thread begins, and that thread has ended THEN it stays announced until another
 * thread ends it. */
static void is_announced_all_the_while(void) {
    finish(start(begin_long, NULL));
    CHECK(attachment && in_flight(board, HEAVY) == 1);
    CHECK(krex_long_open(board, 3) == 1);
    finish(start(end_long, NULL));
    CHECK(krex_long_open(board, 3) == 0);
    then_none_is_announced();
}

static void holders_do_not_count(void) {
    given_one_is_open();
    krex_block_pass(board, 0, 3);
    CHECK(krex_long_open(board, 3) == 0 && krex_in_flight(board, HEAVY, 3, -1) == 0);
    krex_block_pass(board, 0, 0);
    end_long(NULL);
    then_none_is_announced();
}

static int32_t waiter_tid;

static void *begin_long_waiting(void *inside) {
    bool mine = inside && krex_gate_enter();
    krex_store_release(&waiter_tid, own_tid());
    begin_long(NULL);
    krex_gate_leave(mine);
    return NULL;
}

/* GIVEN a shut heavy gate WHEN one begins, inside a submission or not THEN it waits, unannounced. */
static void waits_at_the_gate(void *inside) {
    attachment = 0;
    waiter_tid = 0;
    shut(board, HEAVY);
    pthread_t thread = start(begin_long_waiting, inside);
    EVENTUALLY(is_asleep(krex_load_acquire(&waiter_tid)));
    CHECK(!krex_load_acquire(&attachment) && in_flight(board, HEAVY) == 0);
    unshut(board, HEAVY);
    finish(thread);
    CHECK(in_flight(board, HEAVY) == 1);
    end_long(NULL);
    then_none_is_announced();
}

/* GIVEN one that is open, and a gate that has shut since THEN the process's heavy calls pass, and
 * further long ones; and none when the last of those has ended. */
static void heavy_calls_pass_beside_it(void) {
    given_one_is_open();
    shut(board, HEAVY);
    struct caller caller;
    caller_start_inside(&caller, HEAVY);
    CHECK(in_flight(board, HEAVY) == 2);
    uint64_t second = krex_long_begin();
    end_long(NULL);
    CHECK(in_flight(board, HEAVY) == 2);
    caller_finish(&caller);
    CHECK(in_flight(board, HEAVY) == 1);
    run_heavy(); /* beside the second */
    krex_long_end(second);
    then_none_is_announced();
    caller_start_waiting(&caller, HEAVY);
    unshut(board, HEAVY);
    caller_finish(&caller);
    then_none_is_announced();
}

static void submissions_do_not_pass_beside_it(void) {
    given_one_is_open();
    struct caller caller;
    shut(board, GATE);
    caller_start_waiting(&caller, GATE);
    unshut(board, GATE);
    caller_finish(&caller);
    end_long(NULL);
}

static void without_waiting(void) {
    bool mine, inner;
    CHECK(krex_heavy_try(&mine) && mine && krex_in_flight(board, HEAVY, 0, 0) == 1);
    CHECK(krex_heavy_try(&inner) && !inner);
    krex_heavy_leave(mine);
    shut(board, HEAVY);
    CHECK(!krex_heavy_try(&mine) && !mine);
    unshut(board, HEAVY);
    given_one_is_open();
    shut(board, HEAVY);
    CHECK(krex_heavy_try(&mine) && mine);
    krex_heavy_leave(mine);
    end_long(NULL);
    unshut(board, HEAVY);
    then_none_is_announced();
}

/* GIVEN a shut heavy gate and a heavy call that passed before WHEN a long one begins inside it THEN it
 * does not wait, for the gate would wait for both; and it outlives the call. */
static void inside_a_heavy_call(void) {
    bool mine = krex_heavy_enter();
    shut(board, HEAVY);
    attachment = krex_long_begin();
    CHECK(attachment && in_flight(board, HEAVY) == 2);
    krex_heavy_leave(mine);
    CHECK(in_flight(board, HEAVY) == 1 && krex_long_open(board, 1 << 20) == 1);
    end_long(NULL);
    unshut(board, HEAVY);
    then_none_is_announced();
}

/* GIVEN a thread that runs the exit handlers THEN its heavy calls wait for nobody, but this one does. */
static void *begin_long_at_exit(void *unused) {
    krex_exiting = 1;
    return begin_long_waiting(unused);
}

static void at_exit(void) {
    attachment = 0;
    waiter_tid = 0;
    shut(board, HEAVY);
    pthread_t thread = start(begin_long_at_exit, NULL);
    EVENTUALLY(is_asleep(krex_load_acquire(&waiter_tid)));
    CHECK(!krex_load_acquire(&attachment));
    unshut(board, HEAVY);
    finish(thread);
    end_long(NULL);
    then_none_is_announced();
}

/* GIVEN a child forked while one is open THEN it is not the child's, attached or not. */
static void forked(void) {
    given_one_is_open();
    pid_t child = fork();
    if (!child) {
        CHECK(krex_long_begin() == 0);
        krex_long_end(attachment);
        attach(board);
        CHECK(block()->heavy_open == 0 && block()->overflow_heavy == 0);
        krex_long_end(attachment);
        CHECK(block()->heavy_open == 0 && block()->overflow_heavy == 0);
        _exit(0);
    }
    expect_success(child);
    CHECK(in_flight(board, HEAVY) == 1);
    end_long(NULL);
    then_none_is_announced();
}

/* The order of the two steps of a heavy call beside a long one, made to be the worst: the long call
 * ends in between, and the closer looks. */

static int seen_by_closer = -1;

static void long_call_ends(const char *place) {
    if (strcmp(place, "beside-a-long-call") != 0)
        return;
    krex_store_relaxed(&krex_stop_hook, NULL);
    end_long(NULL);
    seen_by_closer = in_flight(board, HEAVY);
}

static void adds_and_then_looks(void) {
    given_one_is_open();
    shut(board, HEAVY);
    krex_stop_hook = long_call_ends;
    struct caller caller;
    caller_start_waiting(&caller, HEAVY);
    CHECK(in_flight(board, HEAVY) == 0);
    unshut(board, HEAVY);
    caller_finish(&caller);
    CHECK(seen_by_closer == 1);
    then_none_is_announced();
}

/* The negative twin: the other order would let the call in past a closer that is done. */
static void looking_and_then_adding_fails(void) {
    given_one_is_open();
    shut(board, HEAVY);
    bool passes = krex_load_acquire(&block()->heavy_open) > 0;
    long_call_ends("beside-a-long-call");
    krex_add_seq_cst(&block()->overflow_heavy, 1);
    CHECK(passes && seen_by_closer == 0);
    krex_add_seq_cst(&block()->overflow_heavy, -1);
    unshut(board, HEAVY);
    then_none_is_announced();
}

static int steps;

static void on_step(int number) {
    (void)number;
    steps++;
    CHECK(block()->heavy_open <= block()->overflow_heavy);
}

/* At every instruction: who sees it open may rely on its share of the counter. */
static void open_only_while_it_is_announced(void) {
    if (!can_step())
        return;
    handle(SIGTRAP, on_step);
    set_trap_flag();
    uint64_t begun = krex_long_begin();
    krex_long_end(begun);
    clear_trap_flag();
    CHECK(begun && steps > 20);
    then_none_is_announced();
}

/* The same by chance: threads that make calls of both kinds, and a closer. */

enum { CALLERS = 3 };
static uint64_t inside; /* how many are in the driver */
static uint32_t stop;

static void *make_calls(void *number) {
    for (unsigned i = 0; !krex_load_relaxed(&stop); i++) {
        uint64_t begun = number || i % 4 ? 0 : krex_long_begin();
        bool mine = krex_heavy_enter();
        krex_add_seq_cst(&inside, 1);
        krex_add_seq_cst(&inside, -1);
        krex_heavy_leave(mine);
        krex_long_end(begun);
    }
    return NULL;
}

static void nobody_is_inside_when_it_is_shut(void) {
    pthread_t threads[CALLERS];
    for (long i = 0; i < CALLERS; i++)
        threads[i] = start(make_calls, (void *)i);
    for (int i = 0; i < rounds(2000); i++) {
        shut(board, HEAVY);
        EVENTUALLY(in_flight(board, HEAVY) == 0);
        for (int look = 0; look < 20; look++)
            CHECK(krex_add_seq_cst(&inside, 0) == 0);
        unshut(board, HEAVY);
    }
    krex_store_relaxed(&stop, 1);
    for (int i = 0; i < CALLERS; i++)
        finish(threads[i]);
    then_none_is_announced();
}

int main(void) {
    CHECK(krex_long_begin() == 0); /* not attached */
    board = attached_board();
    is_announced_all_the_while();
    holders_do_not_count();
    waits_at_the_gate(NULL);
    waits_at_the_gate(board);
    heavy_calls_pass_beside_it();
    submissions_do_not_pass_beside_it();
    without_waiting();
    inside_a_heavy_call();
    at_exit();
    forked();
    adds_and_then_looks();
    looking_and_then_adding_fails();
    open_only_while_it_is_announced();
    nobody_is_inside_when_it_is_shut();
    return 0;
}
