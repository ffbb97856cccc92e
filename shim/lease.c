/* SPDX-License-Identifier: Apache-2.0
 *
 * For `krex run`, which thaws its command when the controller's lease runs out, and opens the gates
 * when it sees the controller die.
 */
#include <sys/mman.h>

#include "atomic.h"
#include "board.h"
#include "futex.h"
#include "reopen.h"

#define EXPORT __attribute__((visibility("default")))

/* Maps the board behind a descriptor, for reading; NULL on failure. */
EXPORT void *krex_lease_open(int fd) {
    void *board = mmap(NULL, sizeof(struct krex_board), PROT_READ, MAP_SHARED, fd, 0);
    return board == MAP_FAILED ? NULL : board;
}

/* Nanoseconds left, negative when it ran out. */
EXPORT int64_t krex_lease_remaining_ns(const void *board_) {
    const struct krex_board *board = board_;
    return (int64_t)(krex_load_relaxed(&board->lease_deadline_ns) - krex_now_ns());
}

/* Opens whatever a dead controller left closed on the board behind a descriptor. Not for one that
 * merely stands still: its lease has not run out. Mapped for writing only here, because that tells who
 * takes part in a board from who looks at it. */
EXPORT void krex_lease_reopen(int fd) {
    struct krex_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED)
        return;
    uint64_t heavy = krex_load_acquire(&board->heavy_gate);
    if (heavy & 1)
        krex_gate_reopen(board, &board->heavy_gate, heavy);
    uint64_t gate = krex_load_acquire(&board->gate);
    if (gate & 1)
        krex_gate_reopen(board, &board->gate, gate);
    munmap(board, sizeof *board);
}
