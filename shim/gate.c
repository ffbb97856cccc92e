/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "futex.h"
#include "limit.h"
#include "reopen.h"
#include "stop.h"

/* A waiter looks again this often even if nobody wakes it: it bounds what a lost wake-up costs, and
 * is how soon an expired lease is noticed. */
#define WAIT_SLICE_NS UINT64_C(100000000)

union krex_process_page krex_process_page __attribute__((aligned(KREX_PAGE)));
__thread struct krex_thread krex_thread = {.generation = KREX_SLOW};
__thread uint32_t krex_exiting;
void (*krex_gate_attach_hook)(void);
void (*krex_stop_hook)(const char *name);

/* Two gates: LONG is a heavy call that outlives its thread. And what announces a call at one. */
enum kind { SUBMIT, HEAVY, LONG };
enum route { NOT_ANNOUNCED, BY_WORD, BY_COUNTER };

/* A thread's slow half. The handlers of the thread are the only others that see it. Volatile, because
 * the compiler otherwise takes it that no function of libc can run one. */
static __thread volatile uint64_t attached_to = KREX_SLOW; /* what all of it belongs to */
static __thread volatile enum route heavy_by; /* how the heavy call under way is announced */
static __thread volatile bool counted;        /* the submission under way is in the counter */

static pthread_key_t exit_key;
static bool exit_key_made;

/* A submission in the counter keeps the fast path from taking what it leaves for the word's. */
static uint64_t fast_generation(void) { return krex_thread.word ? attached_to : KREX_SLOW; }

static void forget_calls(void) {
    krex_thread.passed = 0;
    counted = false;
    heavy_by = NOT_ANNOUNCED;
}

/* Where a handler that submits would find the thread half joined, or half gone. */
static void block_signals(sigset_t *old) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

static void retract(uint64_t *word) { krex_store_release(word, *word & ~UINT64_C(1)); }

/* A thread ends, maybe inside a call: nothing of it stays announced. The word keeps its epoch and its
 * count, which are the block's from now on; whoever takes it next goes on from there. Dying in
 * between loses a word of a process that is gone. */
static void end_thread(void *unused) {
    struct krex_word *w = krex_thread.word;
    sigset_t old;
    (void)unused;
    if (attached_to != krex_load_acquire(&krex_process.generation))
        return; /* a forked child: all this is its parent's */
    block_signals(&old);
    if (counted)
        krex_add_seq_cst(&krex_process.block->overflow_announced, -1);
    if (heavy_by == BY_COUNTER)
        krex_add_seq_cst(&krex_process.block->overflow_heavy, -1);
    krex_thread.generation = attached_to = KREX_SLOW; /* a later destructor takes a word anew */
    krex_thread.word = NULL;
    if (w) {
        retract(&w->submit);
        retract(&w->heavy);
        krex_store_release(&w->tid, 0); /* pairs with take_word's compare-and-swap */
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Makes a word this thread's if its owner is `owner`; 0 is nobody. */
static bool take_from(struct krex_block *b, uint32_t i, int32_t owner, int32_t tid) {
    if (!krex_cas_u32((uint32_t *)&b->words[i].tid, (uint32_t)owner, (uint32_t)tid))
        return false;
    /* Before the first announce: the closer looks no further than this. */
    uint32_t used = krex_load_relaxed(&b->words_used);
    while (used < i + 1 && !krex_cas_u32(&b->words_used, used, i + 1))
        used = krex_load_relaxed(&b->words_used);
    return true;
}

static bool thread_is_gone(int32_t tid) {
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

/* A free word; else one whose thread is gone without having given it back: it ended by a raw system
 * call, or a handler took the word after the last destructor. Else NULL. */
static struct krex_word *take_word(struct krex_block *b) {
    int32_t tid = (int32_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < KREX_WORDS; i++)
        if (krex_load_relaxed(&b->words[i].tid) == 0 && take_from(b, i, 0, tid))
            return &b->words[i];
    for (uint32_t i = 0; i < KREX_WORDS; i++) {
        int32_t owner = krex_load_relaxed(&b->words[i].tid);
        if (thread_is_gone(owner) && take_from(b, i, owner, tid)) {
            retract(&b->words[i].submit); /* its call will not return */
            retract(&b->words[i].heavy);
            return &b->words[i];
        }
    }
    return NULL;
}

/* The thread's first call under this attachment. No handler may come in between: it would take a word
 * of its own, and one of the two would be lost. */
static void join(uint64_t generation) {
    sigset_t old;
    block_signals(&old);
    if (attached_to != generation) {
        forget_calls(); /* those of a parent, or of a thread that has ended */
        krex_thread.word = exit_key_made ? take_word(krex_process.block) : NULL;
        attached_to = generation;
        krex_thread.generation = fast_generation();
        if (exit_key_made)
            pthread_setspecific(exit_key, &krex_thread);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Makes this thread belong to the current attachment. False: this process is not attached. */
static bool ready_thread(void) {
    /* Acquire: pairs with the attachment's last store. */
    uint64_t generation = krex_load_acquire(&krex_process.generation);
    if (!generation && krex_gate_attach_hook) {
        krex_gate_attach_hook();
        generation = krex_load_acquire(&krex_process.generation);
    }
    if (!generation)
        return false;
    if (attached_to != generation)
        join(generation);
    return true;
}

/* Waits for the gate to leave `epoch`. A controller whose lease ran out is dead or stuck: reopen in
 * its place. The copies are for a handler that forks: its child finds the page wiped, and waits for
 * nothing. */
static void wait_at(uint64_t *gate, uint64_t epoch) {
    uint64_t generation = attached_to;
    struct krex_board *board = krex_process.board;
    struct krex_block *block = krex_process.block;
    uint64_t started = krex_now_ns(), limit_ns = krex_limit_ns();
    while (krex_load_acquire(gate) == epoch && !krex_may_pass(block, epoch)) {
        if (krex_load_relaxed(&krex_process.generation) != generation)
            return;
        uint64_t now = krex_now_ns(), end = krex_load_relaxed(&board->lease_deadline_ns);
        if (end < now) {
            krex_gate_reopen(board, gate, epoch);
            break;
        }
        krex_stop_at("at-the-gate");
        krex_futex_wait(gate, (uint32_t)epoch,
                        end - now < WAIT_SLICE_NS ? end - now + 1 : WAIT_SLICE_NS);
    }
    uint64_t waited = krex_now_ns() - started;
    if (krex_load_relaxed(&krex_process.generation) != generation)
        return;
    krex_raise_u64(&block->longest_wait_ns, waited);
    krex_limit_waited(block, limit_ns, waited);
}

/* The fast path's rule with a full fence of its own. False: retracted, see krex_gate_enter. */
static bool try_word(uint64_t *gate, uint64_t *word, uint64_t epoch) {
    krex_store_relaxed(word, epoch << 1 | 1);
    krex_full_fence();
    krex_stop_at("announced");
    uint64_t seen = krex_load_acquire(gate);
    if (seen == epoch && krex_may_pass(krex_process.block, epoch))
        return true;
    krex_store_release(word, seen << 1);
    return false;
}

/* The same with a shared counter in place of the word. A locked add is a full fence. */
static bool try_counter(uint64_t *gate, uint64_t *counter, uint64_t epoch) {
    krex_add_seq_cst(counter, 1);
    if (krex_load_acquire(gate) == epoch && krex_may_pass(krex_process.block, epoch))
        return true;
    krex_add_seq_cst(counter, -1);
    return false;
}

/* The word that announces a call of this kind; NULL: it is for the counter. So is one whose word is
 * announced already, by the call that a handler interrupted. */
static uint64_t *free_word(enum kind kind) {
    struct krex_word *w = krex_thread.word;
    if (!w || kind == LONG)
        return NULL;
    uint64_t *word = kind == HEAVY ? &w->heavy : &w->submit;
    return krex_load_relaxed(word) & 1 ? NULL : word;
}

/* One try at a gate. */
static enum route try_gate(enum kind kind, uint64_t *gate, uint64_t epoch) {
    struct krex_block *b = krex_process.block;
    uint64_t *word = free_word(kind);
    if (word)
        return try_word(gate, word, epoch) ? BY_WORD : NOT_ANNOUNCED;
    if (!try_counter(gate, kind == SUBMIT ? &b->overflow_announced : &b->overflow_heavy, epoch))
        return NOT_ANNOUNCED;
    if (kind == SUBMIT) /* before the counter falls: the closer reads it after that */
        krex_raise_u64(&b->overflow_epoch, epoch);
    return BY_COUNTER;
}

/* At the closed heavy gate: passes with a long call that is open, in this order only (board.h). One
 * that is just beginning may be missed: then we wait, and it may miss the closer's deadline. */
static enum route try_beside_long(enum kind kind) {
    struct krex_block *b = krex_process.block;
    if (kind == SUBMIT || !krex_load_relaxed(&b->heavy_open))
        return NOT_ANNOUNCED;
    krex_add_seq_cst(&b->overflow_heavy, 1);
    krex_stop_at("beside-a-long-call");
    if (krex_load_acquire(&b->heavy_open))
        return BY_COUNTER;
    krex_add_seq_cst(&b->overflow_heavy, -1);
    return NOT_ANNOUNCED;
}

static enum route try_to_pass(enum kind kind, uint64_t *gate, uint64_t epoch) {
    enum route route = try_gate(kind, gate, epoch);
    return route == NOT_ANNOUNCED ? try_beside_long(kind) : route;
}

/* A long call lasts longer than a submission around it, so it does not pass with that. */
static bool is_nested(enum kind kind) {
    return (krex_thread.passed && kind != LONG) || (kind != SUBMIT && heavy_by != NOT_ANNOUNCED);
}

static uint64_t *gate_of(enum kind kind) {
    return kind == SUBMIT ? &krex_process.board->gate : &krex_process.board->heavy_gate;
}

/* Returns past the gate and announced; or not announced, if nested, harmless, or not attached. */
static enum route pass_gate(enum kind kind, bool (*harmless)(const void *), const void *what) {
    while (ready_thread() && !is_nested(kind)) {
        uint64_t *gate = gate_of(kind);
        uint64_t epoch = krex_load_relaxed(gate);
        enum route route = try_to_pass(kind, gate, epoch);
        if (route != NOT_ANNOUNCED)
            return route;
        if (harmless && krex_load_acquire(gate) & 1 && harmless(what))
            return NOT_ANNOUNCED;
        wait_at(gate, epoch); /* retracted: the closer waits for us no longer */
    }
    return NOT_ANNOUNCED;
}

static __thread void (*volatile before_next)(void);

/* The fast path then finds no generation of its own; from its first look here on it has one again. */
void krex_gate_call_before_next(void (*call)(void)) {
    if (krex_thread.passed)
        return;
    before_next = call;
    krex_thread.generation = KREX_SLOW;
}

static void call_before(void) {
    void (*call)(void) = before_next;
    before_next = NULL;
    krex_compiler_fence();
    if (!counted)
        krex_thread.generation = fast_generation();
    if (call) /* a handler may have been quicker */
        call();
}

bool krex_gate_enter_slow(void) { return krex_gate_enter_slow_unless(NULL, NULL); }

bool krex_gate_enter_slow_unless(bool (*harmless)(const void *what), const void *what) {
    int saved = errno;
    if (before_next && !krex_thread.passed && !(harmless && harmless(what)))
        call_before();
    enum route route = pass_gate(SUBMIT, harmless, what);
    errno = saved;
    if (route == NOT_ANNOUNCED)
        return false;
    krex_store_relaxed(&krex_thread.passed, 1);
    /* First: from here on a handler is nested and leaves the rest alone; one before put it back. */
    krex_compiler_fence();
    counted = route == BY_COUNTER;
    if (counted)
        krex_thread.generation = KREX_SLOW; /* so that leaving comes here as well */
    return true;
}

void krex_gate_leave_slow(void) {
    if (attached_to != krex_load_acquire(&krex_process.generation))
        return;     /* forked inside the call: it is the parent's */
    if (!counted) { /* a handler has asked for our next call, just before this one passed */
        if (krex_thread.word)
            krex_retract_submission();
        return;
    }
    struct krex_block *b = krex_process.block;
    krex_store_relaxed(&krex_thread.passed, 0); /* from here on a handler counts for itself */
    krex_compiler_fence();
    counted = false;
    krex_add_seq_cst(&b->overflow_count, 1);
    krex_add_seq_cst(&b->overflow_announced, -1);
    krex_thread.generation = fast_generation();
}

/* Heavy calls are rare and long: no fast path, every one pays a full fence. */
bool krex_heavy_enter(void) {
    int saved = errno;
    if (krex_exiting)
        return false;
    enum route route = pass_gate(HEAVY, NULL, NULL);
    errno = saved;
    if (route == NOT_ANNOUNCED)
        return false;
    heavy_by = route;
    return true;
}

bool krex_heavy_try(bool *mine) {
    *mine = false;
    if (krex_exiting || !ready_thread() || is_nested(HEAVY))
        return true;
    uint64_t *gate = gate_of(HEAVY);
    heavy_by = try_to_pass(HEAVY, gate, krex_load_relaxed(gate));
    return *mine = heavy_by != NOT_ANNOUNCED;
}

void krex_heavy_leave(bool mine) {
    if (!mine || attached_to != krex_load_acquire(&krex_process.generation))
        return;
    enum route route = heavy_by;
    heavy_by = NOT_ANNOUNCED; /* first: a handler in between counts for itself */
    krex_compiler_fence();
    if (route == BY_WORD)
        retract(&krex_thread.word->heavy);
    else if (route == BY_COUNTER)
        krex_add_seq_cst(&krex_process.block->overflow_heavy, -1);
}

uint64_t krex_long_begin(void) {
    int saved = errno;
    bool attached = ready_thread();
    if (attached && heavy_by != NOT_ANNOUNCED)
        krex_add_seq_cst(&krex_process.block->overflow_heavy, 1); /* the call around it is past */
    else
        attached = pass_gate(LONG, NULL, NULL) != NOT_ANNOUNCED;
    errno = saved;
    if (!attached)
        return 0;
    krex_add_seq_cst(&krex_process.block->heavy_open, 1);
    return attached_to;
}

void krex_long_end(uint64_t attachment) {
    if (!attachment || attachment != krex_load_acquire(&krex_process.generation))
        return;
    krex_add_seq_cst(&krex_process.block->heavy_open, -1); /* first: see try_beside_long */
    krex_add_seq_cst(&krex_process.block->overflow_heavy, -1);
}

int krex_gate_attach(struct krex_board *board, uint32_t index) {
    struct krex_block *b = &board->block[index];
    while (madvise(&krex_process_page, sizeof krex_process_page, MADV_WIPEONFORK) != 0)
        if (errno != EINTR)
            return -errno;
    if (!exit_key_made)
        exit_key_made = pthread_key_create(&exit_key, end_thread) == 0;
    krex_process.self_fenced = 0;
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
