/* SPDX-License-Identifier: Apache-2.0
 *
 * The litmus test of the gate: two processes on two cores, one submits by the real inline fast path,
 * the other closes and scans. Each round has one submission and one closing, started together:
 *
 *     submitter                                 closer
 *     krex_gate_enter()                         close: swap the gate, or take the pass back
 *     note the epoch it passed under            seen = krex_in_flight(...)
 *     stay inside until the closer has looked   open, so that a stopped submitter goes on
 *     krex_gate_leave()
 *
 * A violation: the submitter passed under the epoch before the closing, and was not seen. It was
 * inside when the closer looked, since it stays until then.
 *
 * litmus.c closes as the controller does and must find none; litmus_twin.c closes without the
 * membarrier and must find one, or the first proves nothing.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <sched.h>
#include <sys/prctl.h>

#include "check.h"

struct litmus {
    uint64_t go; /* the round under way */
    uint64_t line0[7];
    uint64_t looked; /* the closer has looked, in that round */
    uint64_t line1[7];
    uint64_t left; /* the submitter has left */
    uint64_t passed_under;
    uint64_t line2[6];
};

/* What a round closes. Both end with the gate closed and no pass; opening it ends the round. */
enum litmus_mode {
    CLOSE_GATE,  /* from open */
    TAKE_PASS,   /* from closed, with the submitter as the holder */
    CLOSE_HEAVY, /* the heavy gate, from open: by its swap alone, for the caller fences himself */
};

static inline int gate_of(enum litmus_mode mode) { return mode == CLOSE_HEAVY ? HEAVY : GATE; }

/* Puts the gate, or the submitter's pass, out of what it can pass under: the epoch `before`. */
typedef void litmus_close(struct krex_board *board, enum litmus_mode mode, uint64_t before);

/* Off the board, and shared by the two processes. */
static struct litmus *litmus;

/* A little of everything, so that the two meet at every offset. */
static inline void dawdle(uint64_t round, uint64_t factor) {
    for (uint64_t i = round * factor % 401; i; i--)
        krex_compiler_fence();
}

/* Spins, but not for a whole time slice where the other one has to run on this core. */
static inline void await_round(const uint64_t *word, uint64_t round) {
    for (uint32_t spins = 1; krex_load_acquire(word) < round; spins++)
        if (spins % 20000 == 0)
            sched_yield();
}

static inline bool litmus_enter(enum litmus_mode mode) {
    return mode == CLOSE_HEAVY ? krex_heavy_enter() : krex_gate_enter();
}

static inline void litmus_leave(enum litmus_mode mode, bool mine) {
    if (mode == CLOSE_HEAVY)
        krex_heavy_leave(mine);
    else
        krex_gate_leave(mine);
}

static inline void litmus_submit(struct krex_board *board, enum litmus_mode mode) {
    attach(board);
    submit(); /* joins: from here on each is the fast path */
    for (uint64_t round = 1;; round++) {
        await_round(&litmus->go, round);
        /* A busy submitter has these lines at hand: its loads are early, its announce is not. */
        (void)krex_may_pass(krex_process.block, krex_gate_epoch(board, gate_of(mode)));
        dawdle(round, 7);
        bool mine = litmus_enter(mode);
        CHECK(mine);
        const struct krex_word *w = krex_thread.word;
        litmus->passed_under = (mode == CLOSE_HEAVY ? w->heavy : w->submit) >> 1;
        await_round(&litmus->looked, round);
        litmus_leave(mode, mine);
        krex_store_release(&litmus->left, round);
    }
}

/* One round. 1: a violation. */
static inline int litmus_round(struct krex_board *board, enum litmus_mode mode, litmus_close *close,
                               uint64_t round) {
    if (mode == TAKE_PASS) {
        /* No membarrier: the submitter is not on its way. */
        krex_block_pass(board, 0, epoch_of(board) + 1);
        CHECK(krex_cas_u64(&board->gate, epoch_of(board), epoch_of(board) + 1));
    }
    uint64_t before = krex_gate_epoch(board, gate_of(mode));
    krex_store_release(&litmus->go, round);
    dawdle(round, 11);
    close(board, mode, before);
    int seen = mode == TAKE_PASS ? krex_in_flight(board, GATE, before, 0)
                                 : in_flight(board, gate_of(mode));
    krex_store_release(&litmus->looked, round);
    unshut(board, gate_of(mode));
    await_round(&litmus->left, round);
    return !seen && litmus->passed_under == before;
}

static inline void pin_to(const cpu_set_t *allowed, int nth) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && nth-- == 0)
            CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* Fewer prove little: the twin finds its first within hundreds to thousands. */
enum { LITMUS_ROUNDS = 20000 };

/* Runs rounds until so many violations, or for so long and so many rounds. Where other programs have
 * the cores a round takes long; 20 seconds are enough then. Returns the violations. */
static inline uint64_t litmus_run(enum litmus_mode mode, litmus_close *close, uint64_t enough,
                                  double seconds) {
    cpu_set_t allowed;
    uint64_t violations = 0, round = 0;
    struct krex_board *board = new_board();
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CHECK(CPU_COUNT(&allowed) >= 2);
    litmus = mmap(NULL, sizeof *litmus, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(litmus != MAP_FAILED);
    pid_t submitter = fork();
    CHECK(submitter >= 0);
    if (submitter == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin_to(&allowed, 0);
        litmus_submit(board, mode);
    }
    pin_to(&allowed, 1);
    EVENTUALLY(krex_block_submissions(board, 0) == 1);
    uint64_t begin = krex_now_ns();
    for (double spent = 0; violations < enough; spent = (double)(krex_now_ns() - begin) * 1e-9) {
        if (spent > seconds && (round > LITMUS_ROUNDS || spent > 20))
            break;
        violations += (uint64_t)litmus_round(board, mode, close, ++round);
    }
    CHECK(kill(submitter, SIGKILL) == 0);
    CHECK(waitpid(submitter, NULL, 0) == submitter);
    CHECK(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    static const char *const names[] = {"closing the gate", "taking the pass",
                                        "closing the heavy gate"};
    printf("%s: %lu violations in %lu rounds\n", names[mode], violations, round);
    return violations;
}

static inline int litmus_means_nothing(void) {
    cpu_set_t allowed;
    if (is_variant("valgrind"))
        return skip("valgrind runs one thread at a time, in order");
    if (is_variant("thread"))
        return skip("the sanitizer's own barriers stand between the store and the load");
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    return CPU_COUNT(&allowed) < 2 ? skip("needs two CPUs") : 0;
}

#endif
