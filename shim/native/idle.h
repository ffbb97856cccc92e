/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a process has anything outstanding on the device, asked while it holds that. One question of
 * a process at a time, and none while it is to drain; a number is never used again.
 */
#ifndef KREX_NATIVE_IDLE_H
#define KREX_NATIVE_IDLE_H

#include <stdint.h>

#include "board.h"

void krex_block_ask_idle(struct krex_board *board, int index, uint32_t number);
/* Whether the answer was yes; there is no other. */
int krex_block_is_idle(const struct krex_board *board, int index, uint32_t number);
/* Takes the question back, answered or not. What it is asked instead by now stays. */
void krex_block_idle_asked(struct krex_board *board, int index, uint32_t number);

#endif
