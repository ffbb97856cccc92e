/* SPDX-License-Identifier: Apache-2.0
 *
 * A signal at every instruction of a hooked call. The processor's trap flag raises SIGTRAP after each
 * instruction; at the one whose turn it is the handler plays the closer, or submits, or both, and at
 * every later one the closer looks again. It grants when it sees nothing in flight, and from then on
 * nothing may reach the driver under that epoch (G1); what is on the device when it finds the block
 * clean was not put there by it (G2).
 *
 * The lease is over from the start, so that whoever waits reopens the gate and all runs in one thread.
 */
#include <ucontext.h>

#include "check.h"

#if defined(__x86_64__)

#define TRAP_FLAG 0x100ULL

struct scenario {
    const char *name;
    int kind;
    void (*before)(int kind);
    void (*act)(int kind);
    bool with_counters; /* also by a thread without a word */
};

static struct krex_board *board;
static struct krex_block *block;
static uint64_t granted[2]; /* under this epoch the closer saw nothing in flight */
static uint64_t pass_taken; /* the block was this epoch's holder */
static int work;            /* on the device since it was last clean */
static uint64_t outermost;  /* submissions that were announced */
static int steps, turn;     /* since the trap flag was set; the one to act at */
static const struct scenario *scenario;

static uint64_t *gate_of(int kind) { return kind == HEAVY ? &board->heavy_gate : &board->gate; }

static void driver(int kind, bool mine) {
    if (kind == HEAVY && !mine && scenario->kind == GATE)
        CHECK(krex_in_flight(board, GATE, 0, 0)); /* nested: the gate's closer waits for both */
    else
        CHECK(granted[kind == HEAVY] != krex_load_acquire(gate_of(kind)));
    if (kind == GATE)
        work = 1;
}

static bool call(int kind) {
    bool mine = kind == HEAVY ? krex_heavy_enter() : krex_gate_enter();
    driver(kind, mine);
    kind == HEAVY ? krex_heavy_leave(mine) : krex_gate_leave(mine);
    outermost += mine && kind == GATE;
    return mine;
}

/* What the closer does between its swap and its grant, and between taking the pass and a release. */
static void look(int kind) {
    uint64_t epoch = krex_gate_epoch(board, kind);
    int which_block = pass_taken == epoch ? 0 : -1;
    if (!(epoch & 1) || block->pass == epoch)
        return;
    if (krex_in_flight(board, kind, epoch, which_block) == 0)
        granted[kind == HEAVY] = epoch;
    if (kind == GATE && granted[GATE] == epoch)
        CHECK(!work || !krex_block_clean(board, 0));
}

/* The drainer, once nothing is in flight. */
static void drain(void) {
    if (granted[GATE] == epoch_of(board)) {
        krex_store_release(&block->drained, epoch_of(board));
        work = 0;
    }
}

static void nothing(int kind) { (void)kind; }

static void submits(int kind) { call(kind); }

static void closes(int kind) {
    shut(board, kind);
    look(kind);
}

static void opens(int kind) { unshut(board, kind); }

static void closes_and_submits(int kind) {
    if (!(krex_gate_epoch(board, kind) & 1))
        closes(kind);
    submits(kind);
}

static void submits_and_closes(int kind) {
    submits(kind);
    if (!(krex_gate_epoch(board, kind) & 1))
        closes(kind);
}

static void closes_and_drains(int kind) {
    closes(kind);
    drain();
}

/* The interrupted call waits, or is about to: it may announce under the epoch before. */
static void opens_submits_and_closes(int kind) {
    if (!(krex_gate_epoch(board, kind) & 1))
        return;
    opens(kind);
    submits_and_closes(kind);
}

/* The interrupted call has read an epoch that is two holds old when it announces. */
static void submits_between_two_holds(int kind) {
    if (krex_gate_epoch(board, kind) & 1)
        return;
    closes_and_drains(kind);
    opens_submits_and_closes(kind);
}

static void is_holder(int kind) {
    krex_block_pass(board, 0, krex_gate_epoch(board, kind) + 1);
    shut(board, kind);
}

/* A hold's end: the pass goes first, and what is still in flight is waited for. */
static void loses_pass_and_submits(int kind) {
    pass_taken = krex_gate_epoch(board, kind);
    krex_block_pass(board, 0, 0);
    krex_gate_fence();
    look(kind);
    submits(kind);
}

static void comes_by(void) {}
static void asks_for_the_next(int kind) {
    (void)kind;
    krex_gate_call_before_next(comes_by);
}

static void calls_the_other_kind(int kind) { call(!kind); }

static void other_gate_is_closed(int kind) { closes(!kind); }

static const struct scenario scenarios[] = {
    {"submits", GATE, nothing, submits, false},
    {"closes", GATE, nothing, closes_and_submits, true},
    {"submits, closes", GATE, nothing, submits_and_closes, false},
    {"closes, opens, submits, closes", GATE, nothing, submits_between_two_holds, false},
    {"opens, submits, closes", GATE, closes_and_drains, opens_submits_and_closes, true},
    {"submits at the closed gate", GATE, closes, submits, true},
    {"loses the pass", GATE, is_holder, loses_pass_and_submits, true},
    {"asks for the next", GATE, nothing, asks_for_the_next, true},
    {"asked for, submits", GATE, asks_for_the_next, submits, true},
    {"heavy in submission", GATE, nothing, calls_the_other_kind, false},
    {"heavy in submission, closed", GATE, other_gate_is_closed, calls_the_other_kind, false},
    {"heavy", HEAVY, nothing, submits, false},
    {"heavy, closes", HEAVY, nothing, closes_and_submits, false},
    {"heavy at the closed gate", HEAVY, closes, submits, true},
    {"submission in heavy", HEAVY, nothing, calls_the_other_kind, false},
    {"submission in heavy, closed", HEAVY, other_gate_is_closed, calls_the_other_kind, false},
};

/* The closer looks on for so many instructions; then the call runs free. */
enum { LOOKS = 64 };

static void on_step(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    steps++;
    if (!turn || steps < turn)
        return;
    if (steps == turn)
        scenario->act(scenario->kind);
    look(GATE);
    look(HEAVY);
    if (steps >= turn + LOOKS)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* A fresh state under newer epochs, clean; krex_thread stays what it is. */
static void reset(void) {
    uint64_t epoch = (epoch_of(board) | 1) + 9;
    board->gate = board->heavy_gate = epoch;
    krex_block_pass(board, 0, 0);
    block->drained = epoch - 1;
    granted[GATE] = granted[HEAVY] = 0;
    work = steps = 0;
    outermost = 0;
}

/* One call, with the handler acting after `at` instructions of it. Returns how many it had. */
static int run(int at) {
    uint64_t before;
    reset();
    scenario->before(scenario->kind);
    before = krex_block_submissions(board, 0);
    turn = at;
    set_trap_flag();
    bool mine = call(scenario->kind);
    clear_trap_flag();
    turn = 0;
    mine = mine && (scenario->act != asks_for_the_next || call(GATE)); /* the next */
    /* All is retracted, each outermost submission counted once, and the fast path is as it was. */
    CHECK(krex_in_flight(board, GATE, 0, 0) == 0 && krex_in_flight(board, HEAVY, 0, 0) == 0);
    CHECK(mine && krex_thread.passed == 0);
    CHECK(krex_block_submissions(board, 0) - before == outermost);
    CHECK(!krex_thread.word || krex_thread.generation == krex_process.generation);
    return steps;
}

static void run_scenario(void) {
    int length = run(0);
    /* Long ones spend most of their instructions in the C library and the kernel's clock, and under a
     * sanitizer; what matters in between is longer than a stride. */
    int stride = 1 + length / 100;
    for (int at = 1; at <= length; at += stride) {
        if (getenv("KREX_TEST_VERBOSE"))
            (void)!fprintf(stderr, "%s: %d of %d\n", scenario->name, at, length);
        run(at);
    }
}

static void *run_all(void *unused) {
    submit();
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        scenario = &scenarios[i];
        if (krex_thread.word || scenario->with_counters)
            run_scenario();
    }
    return unused;
}

int main(void) {
    if (is_variant("valgrind") || is_variant("thread"))
        return skip("the tool does not single-step");
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    board = attached_board();
    block = &board->block[0];
    krex_board_lease(board, 0);
    finish(start(run_all, NULL));
    /* Again in a thread without a word. */
    for (int i = 0; i < KREX_WORDS; i++)
        block->words[i].tid = 1;
    finish(start(run_all, NULL));
    CHECK(block->overflow_count > 0);
    return 0;
}

#else

int main(void) { return skip("needs x86-64's trap flag"); }

#endif
