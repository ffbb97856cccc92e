/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's side of the gate. The protocol stands in board.h; closing it stands in closer.h.
 *
 *     bool mine = krex_gate_enter();
 *     r = real(...);
 *     krex_gate_leave(mine);
 */
#ifndef KREX_GATE_H
#define KREX_GATE_H

#include "atomic.h"
#include "board.h"

/* What a submission needs to know of the process. It lies in a page of its own that the kernel wipes
 * in a forked child, however the child came to be (fork, raw clone): there the generation reads 0,
 * matches no thread, and the child attaches anew instead of touching its parent's block. */
struct krex_process {
    uint64_t generation; /* 0: not attached */
    struct krex_board *board;
    struct krex_block *block;
    uint32_t self_fenced;
};

struct krex_thread {
    uint64_t generation; /* of the attachment that `word` belongs to; starts as one that never is */
    struct krex_word *word; /* NULL: no free word, use the block's overflow counters */
};

union krex_process_page {
    struct krex_process p;
    char bytes[4096];
};

extern union krex_process_page krex_process_page;
#define krex_process (krex_process_page.p)
extern __thread struct krex_thread krex_thread;

/* Called once by a thread of a process that is not attached; attaches it, or leaves it detached.
 * Replaced by client.c; NULL (unit tests): stay detached. */
extern void (*krex_gate_attach_hook)(void);

/* Attaches this process to a block whose state is RESERVED or LIVE. Registers for membarrier, makes
 * the block LIVE. Returns 0, or a negative errno (the process page could not be made wipe-on-fork). */
int krex_gate_attach(struct krex_board *board, uint32_t block);
void krex_gate_detach(void);

bool krex_gate_enter_slow(void);
void krex_gate_leave_slow(void);
bool krex_heavy_enter(void);
void krex_heavy_leave(bool mine);

static inline bool krex_gate_may_pass(uint64_t epoch) {
    return !(epoch & 1) || epoch == krex_load_relaxed(&krex_process.block->pass);
}

/* Announces a submission and waits for the gate. Returns false for a nested call, which passes with
 * its outermost one, and for a process that is not attached. */
static inline bool krex_gate_enter(void) {
    struct krex_thread *t = &krex_thread;
    if (__builtin_expect(t->generation != krex_process.generation || !t->word, 0))
        return krex_gate_enter_slow();
    struct krex_word *w = t->word;
    uint64_t *gate = &krex_process.board->gate;
    if (__builtin_expect(krex_load_relaxed(&w->submit) & 1, 0))
        return false;
    uint64_t epoch = krex_load_relaxed(gate);
    krex_store_relaxed(&w->submit, epoch << 1 | 1);
    krex_compiler_fence(); /* the CPU's half is paid by the closer's membarrier */
    if (__builtin_expect(krex_process.self_fenced, 0))
        krex_full_fence();
    /* Acquire: what the closer did before it opened (thaw, drain) is before our submission. */
    if (__builtin_expect(krex_load_acquire(gate) == epoch && krex_gate_may_pass(epoch), 1))
        return true;
    krex_store_release(&w->submit, epoch << 1);
    return krex_gate_enter_slow();
}

/* Retracts. Release: the closer that reads the retracted word sees the submission as made. */
static inline void krex_gate_leave(bool mine) {
    if (__builtin_expect(!mine, 0))
        return;
    struct krex_word *w = krex_thread.word;
    if (__builtin_expect(!w || krex_thread.generation != krex_process.generation, 0)) {
        krex_gate_leave_slow(); /* no word, or forked inside the call */
        return;
    }
    krex_store_relaxed(&w->count, w->count + 1);
    krex_store_release(&w->submit, w->submit & ~UINT64_C(1));
}

#endif
