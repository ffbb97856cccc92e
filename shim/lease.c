/* SPDX-License-Identifier: Apache-2.0
 *
 * For `krex run`, which thaws its command when the controller's lease runs out.
 */
#include <sys/mman.h>

#include "atomic.h"
#include "board.h"
#include "futex.h"

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
