/* SPDX-License-Identifier: Apache-2.0
 *
 * A forked child has its parent's thread-local words and none of its rights: it touches nothing of the
 * parent's block. By fork and by raw clone, which runs no handlers of pthread_atfork.
 */
#include "check.h"

static pid_t by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static pid_t (*const forks[])(void) = {fork, by_clone};

static struct krex_board *board;
enum { BLOCK_WORDS = sizeof(struct krex_block) / sizeof(uint64_t) };

static uint64_t before[BLOCK_WORDS];

static uint64_t word_of_parents(int i) {
    return krex_load_acquire((uint64_t *)&board->block[0] + i);
}

static void remember(void) {
    for (int i = 0; i < BLOCK_WORDS; i++)
        before[i] = word_of_parents(i);
}

static int parents_block_is_untouched(void) {
    int same = 1;
    for (int i = 0; i < BLOCK_WORDS; i++)
        same &= before[i] == word_of_parents(i);
    return same;
}

static void submit_all(void) {
    submit();
    run_heavy();
}

/* The controller would offer a child a block of its own; this is where it asks. */
static void attach_second(void) {
    CHECK(krex_block_reserve(board, (int)getpid()) == 1);
    CHECK(krex_gate_attach(board, 1) == 0);
}

static void *submit_in_thread(void *unused) {
    submit_all();
    return unused;
}

static void child_starts_detached(pid_t (*forks_)(void)) {
    board = attached_board();
    submit_all();
    shut(board, GATE);
    shut(board, HEAVY);
    remember();
    pid_t child = forks_();
    if (child == 0) {
        /* GIVEN a child WHEN it submits at its parent's closed gate THEN it is neither stopped nor on
         * the parent's record, also when one of its threads ends */
        CHECK(krex_process.generation == 0 && krex_thread.word);
        submit_all();
        if (forks_ == fork) /* a child by raw clone can't make threads */
            finish(start(submit_in_thread, NULL));
        CHECK(parents_block_is_untouched());
        _exit(0);
    }
    expect_success(child);
    /* and the parent is attached as it was */
    CHECK(krex_process.generation && parents_block_is_untouched());
}

static void child_attaches_anew(pid_t (*forks_)(void)) {
    board = attached_board();
    submit_all();
    remember();
    krex_gate_attach_hook = attach_second;
    pid_t child = forks_();
    if (child == 0) {
        submit_all();
        CHECK(parents_block_is_untouched());
        CHECK(krex_thread.word == &board->block[1].words[0]);
        CHECK(krex_block_submissions(board, 1) == 1);
        shut(board, GATE);
        CHECK(in_flight(board, GATE) == 0 && !krex_block_clean(board, 1));
        _exit(0);
    }
    krex_gate_attach_hook = NULL;
    expect_success(child);
}

/* Forks inside calls: the parent's stay announced, whatever the child does. */
static void fork_inside(pid_t (*forks_)(void), void (*attaches)(void)) {
    board = attached_board();
    bool heavy = krex_heavy_enter(), mine = krex_gate_enter();
    CHECK(heavy && mine);
    remember();
    krex_gate_attach_hook = attaches;
    pid_t child = forks_();
    if (child == 0) {
        bool inner = krex_gate_enter();
        CHECK(inner == (attaches != NULL)); /* outermost in the child's own block */
        if (attaches)
            CHECK(krex_in_flight(board, GATE, 3, 1) == 1);
        krex_gate_leave(inner);
        run_heavy();
        krex_gate_leave(mine);
        krex_heavy_leave(heavy);
        CHECK(parents_block_is_untouched());
        CHECK(krex_in_flight(board, GATE, 3, 1) == 0 && krex_in_flight(board, HEAVY, 3, 1) == 0);
        submit_all();
        if (is_variant("thread")) /* whose own thread would keep the process */
            _exit(0);
        pthread_exit(NULL); /* runs the thread's destructors, and ends the child with status 0 */
    }
    krex_gate_attach_hook = NULL;
    expect_success(child);
    CHECK(parents_block_is_untouched());
    CHECK(krex_in_flight(board, GATE, 3, 0) == 1 && krex_in_flight(board, HEAVY, 3, 0) == 1);
    krex_gate_leave(mine);
    krex_heavy_leave(heavy);
    CHECK(krex_in_flight(board, GATE, 3, 0) == 0 && krex_in_flight(board, HEAVY, 3, 0) == 0);
}

struct without_word {
    pid_t (*forks)(void);
    int kind;
    void (*attaches)(void);
};

static void *fork_without_word(void *argument) {
    struct without_word *a = argument;
    bool heavy = a->kind == HEAVY, mine = heavy ? krex_heavy_enter() : krex_gate_enter();
    CHECK(mine && !krex_thread.word);
    remember();
    krex_gate_attach_hook = a->attaches;
    pid_t child = a->forks();
    if (child == 0) {
        /* A call of its own, although the parent's was under way, and it is over when it is over. */
        bool inner = heavy ? krex_heavy_enter() : krex_gate_enter();
        CHECK(inner == (a->attaches != NULL));
        CHECK(krex_in_flight(board, a->kind, 3, 1) == inner);
        heavy ? krex_heavy_leave(inner) : krex_gate_leave(inner);
        heavy ? krex_heavy_leave(mine) : krex_gate_leave(mine);
        CHECK(krex_in_flight(board, a->kind, 3, 1) == 0);
        submit_all();
        CHECK(krex_in_flight(board, GATE, 3, 1) == 0 && krex_in_flight(board, HEAVY, 3, 1) == 0);
        CHECK(parents_block_is_untouched());
        _exit(0);
    }
    krex_gate_attach_hook = NULL;
    expect_success(child);
    CHECK(parents_block_is_untouched());
    heavy ? krex_heavy_leave(mine) : krex_gate_leave(mine);
    return NULL;
}

static void fork_in_a_thread_without_a_word(pid_t (*forks_)(void), int kind,
                                            void (*attaches)(void)) {
    static struct caller owners[KREX_WORDS];
    struct without_word argument = {forks_, kind, attaches};
    board = attached_board();
    for (int i = 0; i < KREX_WORDS; i++)
        caller_start_inside(&owners[i], kind == HEAVY ? GATE : HEAVY);
    finish(start(fork_without_word, &argument));
    CHECK(!board->block[0].overflow_announced && !board->block[0].overflow_heavy);
    for (int i = 0; i < KREX_WORDS; i++)
        caller_finish(&owners[i]);
}

/* A handler that forks while its thread waits, and returns in the child. */
static pid_t (*fork_in_handler)(void);
static pid_t child_of_handler;
static int32_t waiter;

static void on_signal(int number) {
    (void)number;
    pid_t child = fork_in_handler();
    krex_store_release(&child_of_handler, child);
}

static void *wait_and_go(void *unused) {
    pid_t parent = getpid();
    krex_store_release(&waiter, own_tid());
    bool mine = krex_gate_enter();
    if (getpid() != parent) {
        krex_gate_leave(mine);
        _exit(mine || !parents_block_is_untouched());
    }
    CHECK(mine);
    krex_gate_leave(mine);
    return unused;
}

static void fork_while_waiting(pid_t (*forks_)(void)) {
    board = attached_board();
    shut(board, GATE);
    fork_in_handler = forks_;
    child_of_handler = waiter = 0;
    handle(SIGUSR1, on_signal);
    pthread_t thread = start(wait_and_go, NULL);
    EVENTUALLY(is_asleep(krex_load_acquire(&waiter)));
    remember();
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    EVENTUALLY(krex_load_acquire(&child_of_handler));
    expect_success(child_of_handler);
    unshut(board, GATE);
    finish(thread);
}

int main(void) {
    /* The thread sanitizer lives through its own fork only. */
    for (int i = 0; i < (is_variant("thread") ? 1 : 2); i++) {
        child_starts_detached(forks[i]);
        child_attaches_anew(forks[i]);
        fork_inside(forks[i], NULL);
        fork_inside(forks[i], attach_second);
        for (int kind = GATE; kind <= HEAVY; kind++) {
            fork_in_a_thread_without_a_word(forks[i], kind, NULL);
            fork_in_a_thread_without_a_word(forks[i], kind, attach_second);
        }
        fork_while_waiting(forks[i]);
    }
    return 0;
}
