/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's side of the gate. The protocol stands in board.h; closing it stands in closer.h.
 *
 *     bool mine = krex_gate_enter();
 *     r = real(...);
 *     krex_gate_leave(mine);
 *
 * Rules, each with a test in tests/unit/c:
 *
 * Nesting. The outermost submission of a thread announces and checks; what the driver calls from
 * inside it passes with it, submissions and heavy calls alike. A submission inside a heavy call is
 * announced all the same: its epoch must be on record, or the process would look clean.
 *
 * Signals. A handler may submit at any instruction. Inside a call that is past the gate it is nested.
 * Where the interrupted call has announced and not yet passed (or is about to retract), the handler
 * does not know what that call will see, so it announces and checks for itself, in the block's
 * counters. If it has to wait there, the call below it stays announced; a closer that has not looked
 * yet then misses its deadline, and says so.
 *
 * Captures. While a long heavy call of the process is open, its other heavy calls pass the heavy gate
 * even if that has closed. Who dies with one open takes it along with the block.
 *
 * Fork. A child, by fork or raw clone, starts detached whatever its parent was doing, and leaves
 * without a trace a call that it was forked in. Not covered: a handler that forks at an instruction
 * of krex_gate_enter itself and returns in the child, as against calling exec or _exit there.
 *
 * Thread exit. A thread that ends inside a call (pthread_exit, cancellation) retracts it.
 *
 * Jumps. A thread that leaves a call by longjmp or by an exception stays announced until it ends, and
 * its later calls pass as nested ones. That costs regions, never truth: under every later epoch the
 * closer counts the thread as in flight, so no region beside it is exclusive.
 */
#ifndef KREX_GATE_H
#define KREX_GATE_H

#include "atomic.h"
#include "board.h"

/* What a submission needs to know of the process. It lies in a page of its own that the kernel wipes
 * in a forked child, however the child came to be (fork, raw clone): there the generation reads 0,
 * matches no thread, and the child attaches anew instead of touching its parent's block. */
struct krex_process {
    uint64_t generation; /* 0: not attached. Written last: pairs with the slow path's acquire */
    struct krex_board *board;
    struct krex_block *block;
    uint32_t self_fenced;
};

/* What a thread's fast path needs to know of the thread; the slow path keeps the rest in gate.c. */
struct krex_thread {
    /* The attachment that `word` belongs to, or KREX_SLOW, which matches none: the thread has no
     * word, or a handler's submission is under way in the counters. */
    uint64_t generation;
    struct krex_word *word;
    /* The outermost submission is past the gate: what is called inside is nested. */
    uint32_t passed;
};

#define KREX_SLOW UINT64_MAX

/* In each hook, however many there are: a call would cost as much as the check. */
#define KREX_INLINE static inline __attribute__((always_inline))

/* The largest page that Linux has on the machine: the wiping goes by whole pages. */
#if defined(__aarch64__)
#define KREX_PAGE 65536
#else
#define KREX_PAGE 4096
#endif

union krex_process_page {
    struct krex_process p;
    char bytes[KREX_PAGE];
};

extern union krex_process_page krex_process_page;
#define krex_process (krex_process_page.p)
extern __thread struct krex_thread krex_thread;

/* Called by a thread of a process that is not attached; attaches it, or leaves it detached. Replaced
 * by client.c; NULL (unit tests): stay detached. */
extern void (*krex_gate_attach_hook)(void);

/* Attaches this process to a block whose state is RESERVED or LIVE. Registers for membarrier, makes
 * the block LIVE. Returns 0, or a negative errno (the process page could not be made wipe-on-fork).
 * One thread at a time. */
int krex_gate_attach(struct krex_board *board, uint32_t block);
void krex_gate_detach(void);

/* Set by the thread that runs the exit handlers: from then on its heavy calls, with which runtimes and
 * destructors tidy up, wait for nobody. What it submits is gated like everything. */
extern __thread uint32_t krex_exiting;

bool krex_gate_enter_slow(void);
/* The same for a submission that may turn out to put nothing on the device: where it would wait, it
 * asks `harmless(what)` first, and if so returns false, as for a nested call: neither held up nor
 * announced. */
bool krex_gate_enter_slow_unless(bool (*harmless)(const void *what), const void *what);
void krex_gate_leave_slow(void);
/* Has this thread's next submission that is not harmless call it, before it is announced; once. Not from
 * inside one. */
void krex_gate_call_before_next(void (*call)(void));
bool krex_heavy_enter(void);
void krex_heavy_leave(bool mine);
/* Without waiting. False: it would have to wait; else *mine is what krex_heavy_enter returns. */
bool krex_heavy_try(bool *mine);

/* A long heavy call (board.h): begun by one function and ended by another, in whatever thread. It
 * waits for the gate in a thread that runs the exit handlers too, and inside a submission, but not
 * inside a heavy call. Returns the attachment that it is announced under; 0: not attached. */
uint64_t krex_long_begin(void);
/* Does nothing for 0, and in a forked child for what its parent began. */
void krex_long_end(uint64_t attachment);

static inline bool krex_may_pass(const struct krex_block *block, uint64_t epoch) {
    return !(epoch & 1) || epoch == krex_load_relaxed(&block->pass);
}

/* Whether the thread has a word under the current attachment, and nothing in the counters. */
static inline bool krex_on_fast_path(void) {
    uint64_t generation = krex_load_relaxed(&krex_thread.generation);
    bool same = generation == krex_load_relaxed(&krex_process.generation);
    krex_compiler_fence(); /* only then the word: a handler may be the one who joins */
    return same;
}

/* True: announced, and past the gate. False: take the slow path, nothing is announced. */
KREX_INLINE bool krex_gate_enter_fast(void) {
    if (__builtin_expect(!krex_on_fast_path(), 0))
        return false;
    struct krex_word *w = krex_thread.word;
    uint64_t *gate = &krex_process.board->gate;
    if (__builtin_expect(krex_load_relaxed(&w->submit) & 1, 0))
        return false;
    uint64_t epoch = krex_load_relaxed(gate);
    krex_store_relaxed(&w->submit, epoch << 1 | 1);
    krex_compiler_fence(); /* the CPU's half is paid by the closer's membarrier */
    if (__builtin_expect(krex_process.self_fenced, 0))
        krex_full_fence();
    /* Acquire: what the closer did before it opened (thaw, drain) is before our submission. */
    uint64_t seen = krex_load_acquire(gate);
    if (__builtin_expect(seen == epoch && krex_may_pass(krex_process.block, epoch), 1)) {
        krex_store_relaxed(&krex_thread.passed, 1);
        krex_compiler_fence();
        return true;
    }
    /* Under what was seen, not under `epoch`: a handler may have submitted since that was read, and
     * its epoch, which is at most `seen`, must not be lost. */
    krex_store_release(&w->submit, seen << 1);
    return false;
}

/* Announces a submission and waits for the gate. Returns false for a nested call, which passes with
 * its outermost one, and for a process that is not attached. */
static inline bool krex_gate_enter(void) {
    return __builtin_expect(krex_gate_enter_fast(), 1) || krex_gate_enter_slow();
}

/* Release: the closer that reads the retracted word sees the submission as made. */
KREX_INLINE void krex_retract_submission(void) {
    struct krex_word *w = krex_thread.word;
    krex_store_relaxed(&w->count, w->count + 1);
    /* Before the retraction: a handler in between must not pass with a call that is over. */
    krex_compiler_fence();
    krex_store_relaxed(&krex_thread.passed, 0);
    krex_store_release(&w->submit, w->submit & ~UINT64_C(1));
}

KREX_INLINE void krex_gate_leave(bool mine) {
    if (__builtin_expect(!mine, 0))
        return;
    if (__builtin_expect(!krex_on_fast_path(), 0)) {
        krex_gate_leave_slow(); /* in the counters, or forked inside the call */
        return;
    }
    krex_retract_submission();
}

#endif
