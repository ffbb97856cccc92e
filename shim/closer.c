/* SPDX-License-Identifier: Apache-2.0 */
#include "closer.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>

#include "atomic.h"
#include "futex.h"
#include "reopen.h"

void krex_board_init(struct krex_board *board, const char *device_key, int controller_pid) {
    board->abi = KREX_BOARD_ABI;
    board->compat = KREX_BOARD_COMPAT;
    board->size = sizeof *board;
    board->blocks = KREX_BLOCKS;
    board->controller_pid = controller_pid;
    strncpy(board->device_key, device_key, KREX_DEVICE_KEY_SIZE - 1);
    board->gate = 2;
    board->heavy_gate = 2;
    krex_store_release(&board->magic,
                       KREX_BOARD_MAGIC); /* pairs with the client's check at mapping */
}

void krex_board_lease(struct krex_board *board, uint64_t ns) {
    krex_store_relaxed(&board->lease_deadline_ns, krex_now_ns() + ns);
}

int krex_block_reserve(struct krex_board *board, int pid) {
    for (int i = 0; i < KREX_BLOCKS; i++) {
        struct krex_block *b = &board->block[i];
        if (krex_load_relaxed(&b->state) != KREX_BLOCK_FREE)
            continue;
        b->pid = pid;
        krex_store_release(&b->state, KREX_BLOCK_RESERVED);
        if (board->blocks_used <= (uint32_t)i)
            board->blocks_used = (uint32_t)i + 1;
        return i;
    }
    return -1;
}

void krex_block_free(struct krex_board *board, int index) {
    struct krex_block *b = &board->block[index];
    memset((char *)b + sizeof b->state, 0, sizeof *b - sizeof b->state);
    krex_store_release(&b->state, KREX_BLOCK_FREE);
}

/* It lies where clients can write; whatever it is, a scan stays on the board. */
static uint32_t blocks_used(const struct krex_board *board) {
    uint32_t used = krex_load_relaxed(&board->blocks_used);
    return used < KREX_BLOCKS ? used : KREX_BLOCKS;
}

static uint64_t *gate_word(const struct krex_board *board, int which) {
    return (uint64_t *)(which ? &board->heavy_gate : &board->gate);
}

uint64_t krex_gate_epoch(const struct krex_board *board, int which) {
    return krex_load_acquire(gate_word(board, which));
}

int krex_gate_fence(void) {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
        return 0;
    int failure = -errno;
    krex_full_fence();
    return failure;
}

/* A block that becomes live after this look announces after its own full fence, and sees our swap. */
static int all_fence_themselves(const struct krex_board *board) {
    uint32_t used = blocks_used(board);
    for (uint32_t i = 0; i < used; i++) {
        const struct krex_block *b = &board->block[i];
        if (krex_load_acquire(&b->state) == KREX_BLOCK_LIVE &&
            !(krex_load_acquire(&b->flags) & KREX_FLAG_SELF_FENCED))
            return 0;
    }
    return 1;
}

int krex_gate_swap(struct krex_board *board, int which, uint64_t expected) {
    uint64_t *gate = gate_word(board, which);
    if (expected & 1)
        return krex_gate_reopen(board, gate, expected);
    if (!krex_cas_u64(gate, expected, expected + 1))
        return 0;
    if (which) { /* who makes a heavy call has paid for his half himself */
        krex_full_fence();
        return 1;
    }
    int failure = krex_gate_fence(); /* pairs with the announce: see board.h */
    if (!failure || all_fence_themselves(board))
        return 1;
    krex_gate_reopen(board, gate, expected + 1);
    return failure;
}

static int announced(uint64_t word, uint64_t below) { return (word & 1) && word >> 1 < below; }

/* A client writes this; whatever it is, the scan stays inside the block. */
static uint32_t words_used(const struct krex_block *b) {
    uint32_t used = krex_load_acquire(&b->words_used);
    return used < KREX_WORDS ? used : KREX_WORDS;
}

static int block_in_flight(const struct krex_block *b, int which, uint64_t below) {
    int n = (int)krex_load_acquire(which ? &b->overflow_heavy : &b->overflow_announced);
    uint32_t used = words_used(b);
    for (uint32_t i = 0; i < used; i++)
        n += announced(krex_load_acquire(which ? &b->words[i].heavy : &b->words[i].submit), below);
    return n;
}

/* A holder's words may be announced under the closing epoch: its counters are left out too. */
static int waits_for(const struct krex_block *b, uint64_t epoch) {
    return krex_load_acquire(&b->state) == KREX_BLOCK_LIVE && krex_load_relaxed(&b->pass) != epoch;
}

int krex_in_flight(const struct krex_board *board, int which, uint64_t epoch, int block) {
    if (block >= 0)
        return block_in_flight(&board->block[block], which, UINT64_MAX);
    uint32_t used = blocks_used(board);
    int n = 0;
    for (uint32_t i = 0; i < used; i++)
        if (waits_for(&board->block[i], epoch))
            n += block_in_flight(&board->block[i], which, epoch);
    return n;
}

int krex_long_open(const struct krex_board *board, uint64_t epoch) {
    uint32_t used = blocks_used(board);
    int n = 0;
    for (uint32_t i = 0; i < used; i++)
        if (waits_for(&board->block[i], epoch))
            n += (int)krex_load_acquire(&board->block[i].heavy_open);
    return n;
}

/* An announced word is never clean: until it is retracted its epoch may be lower than that of what a
 * signal handler submitted just before. The counter is read before its epoch, which is raised first. */
int krex_block_clean(const struct krex_board *board, int index) {
    const struct krex_block *b = &board->block[index];
    uint64_t drained = krex_load_acquire(&b->drained);
    if (krex_load_acquire(&b->overflow_announced) ||
        krex_load_acquire(&b->overflow_epoch) > drained)
        return 0;
    uint32_t used = words_used(b);
    for (uint32_t i = 0; i < used; i++) {
        uint64_t word = krex_load_acquire(&b->words[i].submit);
        if ((word & 1) || word >> 1 > drained)
            return 0;
    }
    return 1;
}

uint64_t krex_block_submissions(const struct krex_board *board, int index) {
    const struct krex_block *b = &board->block[index];
    uint64_t n = krex_load_relaxed(&b->overflow_count);
    uint32_t used = words_used(b);
    for (uint32_t i = 0; i < used; i++)
        n += krex_load_relaxed(&b->words[i].count);
    return n;
}

int krex_block_tids(const struct krex_board *board, int index, int32_t *tids) {
    const struct krex_block *b = &board->block[index];
    uint32_t used = words_used(b);
    int n = 0;
    for (uint32_t i = 0; i < used; i++) {
        int32_t tid = krex_load_acquire(&b->words[i].tid); /* pairs with the taking of the word */
        if (tid)
            tids[n++] = tid;
    }
    return n;
}

void krex_block_give_ticket(struct krex_board *board, int index, uint64_t number) {
    krex_store_release(&board->block[index].ticket, number);
    krex_futex_wake_all(&board->block[index].ticket);
}

uint64_t krex_block_ticket(const struct krex_board *board, int index) {
    return krex_load_relaxed(&board->block[index].ticket);
}

void krex_block_pass(struct krex_board *board, int index, uint64_t epoch) {
    krex_store_release(&board->block[index].pass, epoch);
    /* A waiter of the new holder sleeps on a gate word, which does not change now. At an open gate
     * nobody sleeps, and nobody but our caller shuts it. */
    if (epoch && krex_load_relaxed(&board->heavy_gate) & 1) {
        krex_futex_wake_all(&board->gate);
        krex_futex_wake_all(&board->heavy_gate);
    }
}

void krex_block_ask_drain(struct krex_board *board, int index, uint64_t epoch) {
    uint64_t *request = &board->block[index].drain_request;
    krex_store_release(request, epoch);
    krex_futex_wake_all(request);
}

int krex_block_drained(const struct krex_board *board, int index, uint64_t epoch) {
    return krex_load_acquire(&board->block[index].drained) >= epoch;
}

int krex_mark_move(struct krex_board *board, int index, int mark, uint32_t from, uint32_t to) {
    uint32_t *state = &board->block[index].marks[mark];
    if (!krex_cas_u32(state, from, to))
        return 0;
    krex_futex_wake_all(state);
    return 1;
}

int krex_block_state(const struct krex_board *board, int index) {
    return (int)krex_load_acquire(&board->block[index].state);
}

uint32_t krex_block_flags(const struct krex_board *board, int index) {
    return krex_load_acquire(&board->block[index].flags);
}

uint64_t krex_block_longest_wait_ns(const struct krex_board *board, int index) {
    return krex_load_relaxed(&board->block[index].longest_wait_ns);
}
