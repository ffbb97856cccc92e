/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's side: blocks, marks, what counts as in flight and as clean, and swaps that fail.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "check.h"

static void blocks_run_out(void) {
    struct krex_board *board = new_board();
    for (int i = 0; i < KREX_BLOCKS; i++)
        CHECK(krex_block_reserve(board, 100 + i) == i);
    CHECK(krex_block_reserve(board, 1) == -1);
    /* WHEN one is freed THEN it is the next one given, and nothing of its old owner is left */
    struct krex_block *block = &board->block[200];
    CHECK(block->pid == 300 && krex_block_state(board, 200) == KREX_BLOCK_RESERVED);
    memset((char *)block + sizeof block->state, 0xff, sizeof *block - sizeof block->state);
    krex_block_free(board, 200);
    CHECK(krex_block_state(board, 200) == KREX_BLOCK_FREE);
    CHECK(krex_block_reserve(board, 1) == 200);
    struct krex_block fresh = {.state = KREX_BLOCK_RESERVED, .pid = 1};
    CHECK(!memcmp(block, &fresh, sizeof fresh));
    CHECK(krex_block_reserve(board, 1) == -1);
    CHECK(board->block[199].pid == 299 && board->block[201].pid == 301); /* neighbours stay */
}

static struct krex_block *live_block(struct krex_board *board) {
    int index = krex_block_reserve(board, 1);
    board->block[index].state = KREX_BLOCK_LIVE;
    return &board->block[index];
}

static void announce(struct krex_block *block, int which, uint32_t word, uint64_t epoch) {
    uint64_t value = epoch << 1 | 1;
    *(which == HEAVY ? &block->words[word].heavy : &block->words[word].submit) = value;
    if (block->words_used <= word)
        block->words_used = word + 1;
}

static void in_flight_by_epoch(int which) {
    struct krex_board *board = new_board();
    struct krex_block *holder = live_block(board), *sibling = live_block(board);
    CHECK(krex_in_flight(board, which, 5, -1) == 0);
    /* Announced under an older epoch: in flight. Under this one: about to see the closed gate. */
    announce(sibling, which, 0, 2);
    announce(sibling, which, 7, 4);
    announce(sibling, which, 8, 5);
    CHECK(krex_in_flight(board, which, 5, -1) == 2);
    CHECK(krex_in_flight(board, !which, 5, -1) == 0);
    /* Who holds this epoch's pass is left out; an older pass is none. */
    announce(holder, which, 0, 4);
    announce(holder, which, 1, 5);
    krex_block_pass(board, 0, 3);
    CHECK(krex_in_flight(board, which, 5, -1) == 3);
    krex_block_pass(board, 0, 5);
    CHECK(krex_in_flight(board, which, 5, -1) == 2);
    /* Of one block, whatever it holds, every epoch counts. */
    CHECK(krex_in_flight(board, which, 5, 0) == 2 && krex_in_flight(board, which, 5, 1) == 3);
    /* The counter has no epoch. */
    *(which == HEAVY ? &sibling->overflow_heavy : &sibling->overflow_announced) = 4;
    CHECK(krex_in_flight(board, which, 5, -1) == 6);
    /* Blocks that are not live do not count. */
    sibling->state = KREX_BLOCK_RESERVED;
    CHECK(krex_in_flight(board, which, 5, -1) == 0);
}

/* However long the list of words says it is, the scan stays inside. */
static void words_used_is_not_trusted(void) {
    struct krex_board *board = new_board();
    struct krex_block *block = live_block(board);
    live_block(board);
    memset(board->block[1].words, 0xff, sizeof board->block[1].words);
    block->words_used = UINT32_MAX;
    CHECK(krex_in_flight(board, GATE, 3, 0) == 0);
    CHECK(krex_block_clean(board, 0));
}

static void clean_by_epoch(void) {
    struct krex_board *board = new_board();
    struct krex_block *block = live_block(board);
    CHECK(krex_block_clean(board, 0)); /* has submitted nothing */
    block->words_used = 2;
    block->words[1].submit = 4 << 1;
    CHECK(!krex_block_clean(board, 0));
    block->drained = 3;
    CHECK(!krex_block_clean(board, 0));
    block->drained = 4;
    CHECK(krex_block_clean(board, 0));
    block->words[1].submit = 2 << 1 | 1; /* announced: what its epoch says may be stale */
    CHECK(!krex_block_clean(board, 0));
    block->words[1].submit = 2 << 1;
    block->overflow_epoch = 6;
    CHECK(!krex_block_clean(board, 0));
    block->drained = 7;
    CHECK(krex_block_clean(board, 0));
    block->overflow_announced = 1;
    CHECK(!krex_block_clean(board, 0));
    block->overflow_announced = 0;
    block->words[0].heavy = 8 << 1 | 1; /* a heavy call puts no work on the device */
    CHECK(krex_block_clean(board, 0));
    CHECK(krex_block_drained(board, 0, 7) && !krex_block_drained(board, 0, 8));
}

static void marks_move(void) {
    struct krex_board *board = new_board();
    uint32_t *mark = &board->block[0].marks[3];
    *mark = KREX_MARK_REQUESTED;
    CHECK(!krex_mark_move(board, 0, 3, KREX_MARK_LEAVING, KREX_MARK_FREE));
    CHECK(*mark == KREX_MARK_REQUESTED);
    CHECK(krex_mark_move(board, 0, 3, KREX_MARK_REQUESTED, KREX_MARK_EXCLUSIVE));
    CHECK(*mark == KREX_MARK_EXCLUSIVE);
    CHECK(!krex_mark_move(board, 0, 3, KREX_MARK_REQUESTED, KREX_MARK_SHARED));
    CHECK(board->block[0].marks[2] == KREX_MARK_FREE && board->block[0].marks[4] == KREX_MARK_FREE);
}

/* The other side of a grant: a thread that waits for its mark is woken. */
static void *await_mark(void *mark_) {
    uint32_t *mark = mark_;
    while (krex_load_acquire(mark) == KREX_MARK_REQUESTED)
        krex_futex_wait(mark, KREX_MARK_REQUESTED, UINT64_C(3600000000000));
    return NULL;
}

static void moving_wakes(void) {
    struct krex_board *board = new_board();
    uint32_t *mark = &board->block[0].marks[0];
    *mark = KREX_MARK_REQUESTED;
    pthread_t thread = start(await_mark, mark);
    usleep(5000);
    CHECK(krex_mark_move(board, 0, 0, KREX_MARK_REQUESTED, KREX_MARK_SHARED));
    finish(thread);
}

static void swaps_expect_their_epoch(void) {
    struct krex_board *board = new_board();
    for (int which = GATE; which <= HEAVY; which++) {
        CHECK(krex_gate_swap(board, which, 4) == 0 && krex_gate_swap(board, which, 1) == 0);
        CHECK(krex_gate_epoch(board, which) == 2);
        CHECK(krex_gate_swap(board, which, 2) == 1 && krex_gate_epoch(board, which) == 3);
        CHECK(krex_gate_swap(board, which, 2) == 0);
    }
    /* WHEN somebody reopened THEN a swap of the lost epoch fails, and changes nothing */
    unshut(board, GATE);
    CHECK(krex_gate_swap(board, GATE, 3) == 0);
    CHECK(krex_gate_epoch(board, GATE) == 4);
    CHECK(krex_gate_swap(board, HEAVY, 3) == 1 && krex_gate_epoch(board, HEAVY) == 4);
}

/* A hold that ends between the two closings leaves both gates at one epoch for the next one. */
static void hold_ends_before_the_gate_closed(void) {
    struct krex_board *board = new_board();
    CHECK(krex_gate_swap(board, HEAVY, 2) == 1);
    CHECK(krex_gate_swap(board, GATE, 3) == 0); /* the controller undoes both, in this order */
    CHECK(krex_gate_swap(board, HEAVY, 3) == 1);
    CHECK(krex_gate_epoch(board, GATE) == 4 && krex_gate_epoch(board, HEAVY) == 4);
    CHECK(krex_gate_swap(board, HEAVY, 4) == 1 && krex_gate_swap(board, GATE, 4) == 1);
}

/* From here on membarrier fails in this process. 0: the kernel let us. */
static int forbid_membarrier(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void closer_without_membarrier(void) {
    struct krex_board *board = new_board();
    struct krex_block *fenced = live_block(board), *other = live_block(board);
    fenced->flags = KREX_FLAG_SELF_FENCED;
    other->flags = KREX_FLAG_UNLISTED;
    if (forbid_membarrier()) {
        (void)skip("no seccomp: a closer without membarrier");
        return;
    }
    /* GIVEN a client that leaves the fence to the closer WHEN it closes THEN the swap is undone */
    CHECK(krex_gate_swap(board, HEAVY, 2) ==
          1); /* but for that of the heavy gate, which needs none */
    CHECK(krex_gate_swap(board, GATE, 2) == -EPERM && krex_gate_epoch(board, GATE) == 4);
    CHECK(krex_gate_swap(board, HEAVY, 3) == 1 && krex_gate_epoch(board, HEAVY) == 4);
    /* GIVEN none WHEN it closes THEN the clients' own fences will do */
    other->state = KREX_BLOCK_FREE;
    CHECK(krex_gate_swap(board, GATE, 4) == 1 && krex_gate_epoch(board, GATE) == 5);
}

/* The mirror image: a client whose registration fails says so, and still works. */
static void client_without_membarrier(void) {
    struct krex_board *board = attached_board();
    if (!(krex_block_flags(board, 0) & KREX_FLAG_SELF_FENCED)) {
        (void)skip("membarrier is not forbidden: a client that fences itself");
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool mine = krex_gate_enter();
        CHECK(mine && krex_in_flight(board, GATE, 3, -1) == 1);
        krex_gate_leave(mine);
    }
    CHECK(krex_gate_swap(board, GATE, 2) == 1);
    struct caller caller;
    caller_start_waiting(&caller, GATE);
    unshut(board, GATE);
    caller_finish(&caller);
}

int main(void) {
    blocks_run_out();
    in_flight_by_epoch(GATE);
    in_flight_by_epoch(HEAVY);
    words_used_is_not_trusted();
    clean_by_epoch();
    marks_move();
    moving_wakes();
    swaps_expect_their_epoch();
    hold_ends_before_the_gate_closed();
    closer_without_membarrier(); /* for the rest of the process */
    client_without_membarrier();
    return 0;
}
