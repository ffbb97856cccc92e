/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"

#include "atomic.h"

void krex_block_audit(const struct krex_board *board, int index, int mark, struct krex_audit *to) {
    const struct krex_block *b = &board->block[index];
    const struct krex_audit *from = mark < 0 ? &b->audit : &b->audits[mark];
    /* First: then what is inside is not below what was inside of those. */
    uint32_t pairs = krex_load_acquire(&from->pairs);
    *to = *from;
    to->pairs = pairs;
}

uint64_t krex_mark_idle_since_ns(const struct krex_board *board, int index, int mark) {
    const struct krex_block *b = &board->block[index];
    if (krex_load_acquire(&b->marks[mark]) != KREX_MARK_IDLE)
        return 0;
    return krex_load_relaxed(&b->audits[mark].idle_since_ns);
}

uint64_t krex_block_limit_wait_ns(const struct krex_board *board, int index) {
    return krex_load_relaxed(&board->block[index].limit_wait_ns);
}
