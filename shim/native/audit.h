/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller reads of marks and audits, and how it ends a mark of timed events (board.h).
 */
#ifndef KREX_NATIVE_AUDIT_H
#define KREX_NATIVE_AUDIT_H

#include "board.h"

/* Of a mark, or with mark < 0 of the whole process. */
void krex_block_audit(const struct krex_board *board, int index, int mark, struct krex_audit *to);
/* Since when a mark is IDLE; 0: it is not. */
uint64_t krex_mark_idle_since_ns(const struct krex_board *board, int index, int mark);
/* The longest wait of the process in which a time limit of its own passed; 0: there was none. */
uint64_t krex_block_limit_wait_ns(const struct krex_board *board, int index);

#endif
