/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks of this process on the board: what the explicit ones (region.c) and the automatic one
 * (arm.c) have in common. None of these functions waits but krex_mark_wait.
 */
#ifndef KREX_REGION_H
#define KREX_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"

/* Takes a mark and asks for the device with it; `marker` says what marks, "": the program itself.
 * Registers the process if need be. The mark, or -1: there is none, or no controller. */
int krex_mark_request(const char *name, const char *marker);
/* Waits at most timeout_s seconds; returns what krex_region_wait returns. */
int krex_mark_wait(int mark, double timeout_s);
void krex_mark_leave(int mark);
/* The same if its state is `from`. */
void krex_mark_leave_from(int mark, uint32_t from);

/* The items of KREX_REGION, one after the other: the next, of so many bytes; NULL: there is none. Begins
 * with *rest = NULL. krex/marker/spec.py says what they are. */
const char *krex_region_item(const char **rest, size_t *length);
bool krex_region_has(const char *item);
/* KREX_REGION=none. */
bool krex_region_disabled(void);
/* The program has marked something itself: automatic marks act no more. */
bool krex_region_explicit(void);

/* Names the region that the calling thread is in: its own; else one of another thread, for timing
 * loops may have helpers; else one that an ancestor handed down. No two have the same name. 0: none. */
uint64_t krex_region_now(void);
uint64_t krex_region_name(int mark);
/* The audit of a region that is this process's own and has not ended; else NULL. */
struct krex_audit *krex_region_audit(uint64_t region);

/* How many submissions this process made. */
uint64_t krex_submissions(void);

#endif
