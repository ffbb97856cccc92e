/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's side of the gate: what board.h calls closing. One process calls these on a board.
 * None of them waits: the caller owns the deadlines.
 */
#ifndef KREX_CLOSER_H
#define KREX_CLOSER_H

#include "board.h"

/* Writes the header of a zeroed segment of sizeof(struct krex_board) bytes; gate open, epoch 2. */
void krex_board_init(struct krex_board *board, const char *device_key, int controller_pid);
/* The controller is alive until now + ns. */
void krex_board_lease(struct krex_board *board, uint64_t ns);

/* Offers a free block to a process. Returns its index, or -1: all are taken. */
int krex_block_reserve(struct krex_board *board, int pid);
/* Only for a process that is known to be dead, or that never made its block live. */
void krex_block_free(struct krex_board *board, int index);

/* `which`: 0 the gate, 1 the heavy gate. Swaps expected -> expected + 1 and, when that closes, runs
 * the membarrier, which the heavy gate does not need (board.h). Returns 1; 0 if the word is not `expected` (somebody reopened it: the lease was
 * lost); a negative errno if the membarrier failed (the swap is undone). Opening wakes the waiters. */
int krex_gate_swap(struct krex_board *board, int which, uint64_t expected);
uint64_t krex_gate_epoch(const struct krex_board *board, int which);
/* A full fence in every registered process. Returns 0; a negative errno if the membarrier failed: then
 * only in this one. */
int krex_gate_fence(void);

/* Threads of live processes other than dead ones that are announced under an epoch below `epoch`
 * (holders' words under `epoch` itself do not count), or, with block >= 0, of that block under any. */
int krex_in_flight(const struct krex_board *board, int which, uint64_t epoch, int block);
/* How many captures are open in those processes: why heavy calls may be in flight for long. */
int krex_long_open(const struct krex_board *board, uint64_t epoch);
int krex_block_state(const struct krex_board *board, int index);
uint32_t krex_block_flags(const struct krex_board *board, int index);
uint64_t krex_block_longest_wait_ns(const struct krex_board *board, int index);
int krex_block_clean(const struct krex_board *board, int index);
uint64_t krex_block_submissions(const struct krex_board *board, int index);
/* The threads that have a word, by the numbers of the process's own pid namespace; some may be gone.
 * Room for KREX_WORDS of them. Returns how many there are. */
int krex_block_tids(const struct krex_board *board, int index, int32_t *tids);

/* Gives a process the ticket of that number, and wakes who waits for it; and the last one given. */
void krex_block_give_ticket(struct krex_board *board, int index, uint64_t number);
uint64_t krex_block_ticket(const struct krex_board *board, int index);
void krex_block_pass(struct krex_board *board, int index, uint64_t epoch);
void krex_block_ask_drain(struct krex_board *board, int index, uint64_t epoch);
int krex_block_drained(const struct krex_board *board, int index, uint64_t epoch);

/* Moves a mark from one state to another and wakes its thread; 0: it was not in `from`. */
int krex_mark_move(struct krex_board *board, int index, int mark, uint32_t from, uint32_t to);

#endif
