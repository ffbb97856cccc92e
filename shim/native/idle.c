/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"

#include "atomic.h"
#include "futex.h"

void krex_block_ask_idle(struct krex_board *board, int index, uint32_t number) {
    uint64_t *request = &board->block[index].drain_request;
    krex_store_release(request, KREX_ASK_IDLE | number);
    krex_futex_wake_all(request);
}

int krex_block_is_idle(const struct krex_board *board, int index, uint32_t number) {
    return krex_load_acquire(&board->block[index].idle) == (KREX_ASK_IDLE | number);
}

void krex_block_idle_asked(struct krex_board *board, int index, uint32_t number) {
    uint64_t *request = &board->block[index].drain_request;
    if (krex_cas_u64(request, KREX_ASK_IDLE | number, 0))
        krex_futex_wake_all(request);
}
