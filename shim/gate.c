/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>

#include "futex.h"

/* A waiter looks again this often even if nobody wakes it: it bounds what a lost wake-up costs, and
 * is how soon an expired lease is noticed. */
#define WAIT_SLICE_NS UINT64_C(100000000)

union krex_process_page krex_process_page __attribute__((aligned(4096)));
__thread struct krex_thread krex_thread = {.generation = UINT64_MAX};
void (*krex_gate_attach_hook)(void);

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

/* A thread ends: what it submitted stays known to the block, then the word is free for another. The
 * order matters: dying in between loses a word of this process, never an epoch. */
static void give_word_back(void *word_) {
    struct krex_word *w = word_;
    struct krex_thread *t = &krex_thread;
    if (t->generation != krex_process.generation || t->word != w)
        return; /* a forked child: this is the parent's word */
    krex_raise_u64(&krex_process.block->exited_epoch, w->submit >> 1);
    krex_add_seq_cst(&krex_process.block->exited_count, w->count);
    krex_store_relaxed(&w->submit, 0);
    krex_store_relaxed(&w->count, 0);
    t->word = NULL;
    t->generation = UINT64_MAX; /* a later destructor that submits takes a word anew */
    krex_store_release(&w->tid, 0);
}

static void make_exit_key(void) {
    exit_key_made = pthread_key_create(&exit_key, give_word_back) == 0;
}

static struct krex_word *take_word(struct krex_block *b) {
    int32_t tid = (int32_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < KREX_WORDS; i++) {
        if (krex_load_relaxed(&b->words[i].tid) != 0 ||
            !krex_cas_u32((uint32_t *)&b->words[i].tid, 0, (uint32_t)tid))
            continue;
        uint32_t used = krex_load_relaxed(&b->words_used);
        while (used < i + 1 && !krex_cas_u32(&b->words_used, used, i + 1))
            used = krex_load_relaxed(&b->words_used);
        return &b->words[i];
    }
    return NULL;
}

/* Makes krex_thread belong to the current attachment. False: this process is not attached. */
static bool ready_thread(void) {
    struct krex_thread *t = &krex_thread;
    if (!krex_process.generation && krex_gate_attach_hook)
        krex_gate_attach_hook();
    if (!krex_process.generation)
        return false;
    if (t->generation == krex_process.generation)
        return true;
    pthread_once(&exit_key_once, make_exit_key);
    t->word = exit_key_made ? take_word(krex_process.block) : NULL;
    t->generation = krex_process.generation;
    if (t->word)
        pthread_setspecific(exit_key, t->word);
    return true;
}

/* Waits for the gate to leave `epoch`. A controller whose lease ran out is dead or stuck: reopen in
 * its place, by the swap it would use, so that it notices if it ever resumes. */
static void wait_at(uint64_t *gate, uint64_t epoch) {
    struct krex_board *board = krex_process.board;
    uint64_t started = krex_now_ns();
    while (krex_load_acquire(gate) == epoch && !krex_gate_may_pass(epoch)) {
        if (krex_load_relaxed(&board->lease_deadline_ns) < krex_now_ns()) {
            krex_cas_u64(gate, epoch, epoch + 1);
            krex_futex_wake_all(gate);
            break;
        }
        krex_futex_wait(gate, (uint32_t)epoch, WAIT_SLICE_NS);
    }
    krex_raise_u64(&krex_process.block->longest_wait_ns, krex_now_ns() - started);
}

static __thread uint32_t overflow_depth; /* of a thread without a word */

/* The rule of the fast path with a shared counter in place of the word. A locked add is a full
 * fence, so the closer's membarrier is not needed here. */
static bool enter_overflow(void) {
    struct krex_block *b = krex_process.block;
    if (overflow_depth)
        return false;
    for (;;) {
        uint64_t epoch = krex_load_relaxed(&krex_process.board->gate);
        krex_raise_u64(&b->overflow_epoch, epoch);
        krex_add_seq_cst(&b->overflow_announced, 1);
        if (krex_load_acquire(&krex_process.board->gate) == epoch && krex_gate_may_pass(epoch))
            break;
        krex_add_seq_cst(&b->overflow_announced, -1);
        if (!krex_gate_may_pass(epoch))
            wait_at(&krex_process.board->gate, epoch);
    }
    overflow_depth = 1;
    return true;
}

bool krex_gate_enter_slow(void) {
    int saved = errno;
    bool mine = false;
    if (ready_thread()) {
        struct krex_word *w = krex_thread.word;
        if (!w) {
            mine = enter_overflow();
        } else if (!(krex_load_relaxed(&w->submit) & 1)) {
            for (;;) {
                uint64_t *gate = &krex_process.board->gate;
                uint64_t epoch = krex_load_relaxed(gate);
                krex_store_relaxed(&w->submit, epoch << 1 | 1);
                krex_full_fence();
                if (krex_load_acquire(gate) == epoch && krex_gate_may_pass(epoch))
                    break;
                krex_store_release(&w->submit,
                                   epoch << 1); /* retract first: the closer waits for us */
                if (!krex_gate_may_pass(epoch))
                    wait_at(gate, epoch);
            }
            mine = true;
        }
    }
    errno = saved;
    return mine;
}

void krex_gate_leave_slow(void) {
    if (krex_thread.generation != krex_process.generation || !overflow_depth)
        return;
    overflow_depth = 0;
    krex_add_seq_cst(&krex_process.block->exited_count, 1);
    krex_add_seq_cst(&krex_process.block->overflow_announced, -1);
}

/* Heavy calls are rare and long: no fast path, every one pays a full fence. */
bool krex_heavy_enter(void) {
    int saved = errno;
    bool mine = false;
    if (ready_thread()) {
        struct krex_word *w = krex_thread.word;
        uint64_t *gate = &krex_process.board->heavy_gate;
        /* Without a word: ungated rather than uncounted; the closer waits for the counter. */
        while (w && !(w->heavy & 1) && !(w->submit & 1)) {
            uint64_t epoch = krex_load_relaxed(gate);
            krex_store_relaxed(&w->heavy, epoch << 1 | 1);
            krex_full_fence();
            mine = krex_load_acquire(gate) == epoch && krex_gate_may_pass(epoch);
            if (mine)
                break;
            krex_store_release(&w->heavy, epoch << 1);
            if (!krex_gate_may_pass(epoch))
                wait_at(gate, epoch);
        }
        if (!w) {
            krex_add_seq_cst(&krex_process.block->overflow_heavy, 1);
            mine = true;
        }
    }
    errno = saved;
    return mine;
}

void krex_heavy_leave(bool mine) {
    if (!mine || krex_thread.generation != krex_process.generation)
        return;
    if (krex_thread.word)
        krex_store_release(&krex_thread.word->heavy, krex_thread.word->heavy & ~UINT64_C(1));
    else
        krex_add_seq_cst(&krex_process.block->overflow_heavy, -1);
}

int krex_gate_attach(struct krex_board *board, uint32_t index) {
    struct krex_block *b = &board->block[index];
    if (madvise(&krex_process_page, sizeof krex_process_page, MADV_WIPEONFORK) != 0)
        return -errno;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0) {
        krex_process.self_fenced = 1;
        __atomic_or_fetch(&b->flags, KREX_FLAG_SELF_FENCED, __ATOMIC_SEQ_CST);
    }
    krex_process.board = board;
    krex_process.block = b;
    krex_store_release(&b->state, KREX_BLOCK_LIVE);
    /* The block is public before the first announce; the closer scans every live block. */
    krex_full_fence();
    uint64_t generation = krex_now_ns() << 8 | (index & 0xff);
    krex_store_release(&krex_process.generation, generation);
    return 0;
}

void krex_gate_detach(void) { krex_store_release(&krex_process.generation, 0); }
