/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C tests share. Each is a program that exits 0, or 77 where it can't run; KREX_CHECK names
 * the variant it was built as (see the Makefile).
 */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "board.h"
#include "closer.h"
#include "futex.h"
#include "gate.h"

enum { GATE, HEAVY };

#define CHECK_TEXT_(x) #x
#define CHECK_TEXT(x) CHECK_TEXT_(x)

/* Ends the program, as fits in signal handlers and forked children too. */
#define FAIL(text)                                                                                 \
    do {                                                                                           \
        static const char text_[] = __FILE__ ":" CHECK_TEXT(__LINE__) ": " text "\n";              \
        (void)!write(STDERR_FILENO, text_, sizeof text_ - 1);                                      \
        _exit(1);                                                                                  \
    } while (0)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL("not so: " #condition);                                                           \
    } while (0)

/* Waits until the condition holds; it is a failure only after far longer than it can take. */
#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        uint64_t limit_ = krex_now_ns() + UINT64_C(60000000000);                                   \
        while (!(condition)) {                                                                     \
            if (krex_now_ns() > limit_)                                                            \
                FAIL("never so: " #condition);                                                     \
            usleep(200);                                                                           \
        }                                                                                          \
    } while (0)

static inline int is_variant(const char *name) {
    const char *variant = getenv("KREX_CHECK");
    return variant && !strcmp(variant, name);
}

/* How often to repeat what is repeated: tools make every step slower. */
static inline int rounds(int plain) {
    int slow = is_variant("valgrind") || is_variant("thread") ? 20 : 1;
    return plain / slow ? plain / slow : 1;
}

static inline int skip(const char *why) {
    (void)!fprintf(stderr, "skipped: %s\n", why);
    return 77;
}

/* A board whose controller, this test, is alive for an hour. */
static inline struct krex_board *new_board(void) {
    struct krex_board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    krex_board_init(board, "sim:0", (int)getpid());
    krex_board_lease(board, UINT64_C(3600000000000));
    return board;
}

/* Attaches this process to a new block of the board. Returns the block's index. */
static inline int attach(struct krex_board *board) {
    int index = krex_block_reserve(board, (int)getpid());
    CHECK(index >= 0);
    CHECK(krex_gate_attach(board, (uint32_t)index) == 0);
    return index;
}

static inline struct krex_board *attached_board(void) {
    struct krex_board *board = new_board();
    CHECK(attach(board) == 0);
    return board;
}

static inline uint64_t epoch_of(const struct krex_board *board) {
    return krex_gate_epoch(board, GATE);
}

static inline uint64_t shut(struct krex_board *board, int which) {
    uint64_t epoch = krex_gate_epoch(board, which);
    CHECK(!(epoch & 1));
    CHECK(krex_gate_swap(board, which, epoch) == 1);
    return epoch + 1;
}

static inline void unshut(struct krex_board *board, int which) {
    uint64_t epoch = krex_gate_epoch(board, which);
    CHECK(epoch & 1);
    CHECK(krex_gate_swap(board, which, epoch) == 1);
}

static inline int in_flight(const struct krex_board *board, int which) {
    return krex_in_flight(board, which, krex_gate_epoch(board, which), -1);
}

static inline void submit(void) { krex_gate_leave(krex_gate_enter()); }

static inline void run_heavy(void) { krex_heavy_leave(krex_heavy_enter()); }

static inline int32_t own_tid(void) { return (int32_t)syscall(SYS_gettid); }

/* Whether a thread of this process sleeps in the kernel, which here means: at a gate. */
static inline int is_asleep(int32_t tid) {
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = tid ? fopen(path, "r") : NULL;
    const char *read = file ? fgets(line, sizeof line, file) : NULL;
    if (file)
        (void)fclose(file);
    const char *name_end = read ? strrchr(line, ')') : NULL;
    return name_end && name_end[2] == 'S';
}

static inline pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0);
    return thread;
}

static inline void finish(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

static inline void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(number, &action, NULL) == 0);
}

/* A child that ran to its own exit(0); its own CHECKs make it exit 1. */
static inline void expect_success(pid_t child) {
    int status = -1;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#if defined(__x86_64__)

/* The processor's trap flag raises SIGTRAP after each instruction. */
__attribute__((noinline, unused)) static void set_trap_flag(void) {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | 0x100ULL);
}

__attribute__((noinline, unused)) static void clear_trap_flag(void) {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~0x100ULL);
}

#else

static inline void set_trap_flag(void) {}
static inline void clear_trap_flag(void) {}

#endif

/* Whether those do anything. */
static inline int can_step(void) {
#if defined(__x86_64__)
    return !is_variant("valgrind") && !is_variant("thread");
#else
    return 0;
#endif
}

/* A thread that makes one call of a kind and stays inside until told. */
struct caller {
    pthread_t thread;
    int kind;      /* GATE or HEAVY */
    int32_t tid;   /* set before the call */
    uint32_t in;   /* set when past the gate */
    uint32_t mine; /* what enter returned */
    uint32_t stop;
    struct krex_word *word; /* the thread's, once it is past the gate */
};

static inline void *caller_run(void *caller_) {
    struct caller *c = caller_;
    krex_store_release(&c->tid, own_tid());
    bool mine = c->kind == HEAVY ? krex_heavy_enter() : krex_gate_enter();
    c->mine = mine;
    c->word = krex_thread.word;
    krex_store_release(&c->in, 1);
    while (!krex_load_acquire(&c->stop))
        krex_futex_wait(&c->stop, 0, UINT64_C(1000000000));
    if (c->kind == HEAVY)
        krex_heavy_leave(mine);
    else
        krex_gate_leave(mine);
    return NULL;
}

static inline void caller_start(struct caller *c, int kind) {
    *c = (struct caller){.kind = kind};
    c->thread = start(caller_run, c);
}

static inline int caller_is_in(struct caller *c) { return (int)krex_load_acquire(&c->in); }

/* Starts it, and returns when it sleeps at the closed gate. */
static inline void caller_start_waiting(struct caller *c, int kind) {
    caller_start(c, kind);
    EVENTUALLY(is_asleep(krex_load_acquire(&c->tid)));
    CHECK(!caller_is_in(c));
}

static inline void caller_start_inside(struct caller *c, int kind) {
    caller_start(c, kind);
    EVENTUALLY(caller_is_in(c));
}

static inline void caller_finish(struct caller *c) {
    EVENTUALLY(caller_is_in(c));
    krex_store_release(&c->stop, 1);
    krex_futex_wake_all(&c->stop);
    finish(c->thread);
}

#endif
