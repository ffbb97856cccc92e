/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks of this process on the board: what the explicit ones (region.c) and the automatic one
 * (arm.c) have in common. None of these functions waits but krex_mark_wait and krex_mark_await.
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
/* Asks for the device anew with a mark that has yielded it. False: it has not, or there is no controller;
 * then the mark is as it was. */
bool krex_mark_request_again(int mark, const char *name, const char *marker);
/* Waits at most timeout_s seconds; returns what krex_region_wait returns. */
int krex_mark_wait(int mark, double timeout_s);
/* Waits to the end. */
void krex_mark_await(int mark);
void krex_mark_leave(int mark);
/* The same if its state is `from`. */
void krex_mark_leave_from(int mark, uint32_t from);

/* The items of KREX_REGION, one after the other: the next, of so many bytes; NULL: there is none. Begins
 * with *rest = NULL. krex/marker/spec.py says what they are. */
const char *krex_region_item(const char **rest, size_t *length);
bool krex_region_has(const char *item);
/* KREX_REGION=none. */
bool krex_region_disabled(void);
/* KREX_REGION=auto, as by default: what marks is to be found out. */
bool krex_region_auto(void);
/* The program has marked something itself: automatic marks act no more. */
bool krex_region_explicit(void);
/* It has said that it may. */
bool krex_region_expected(void);

/* Names the region that the calling thread is in: its own; else one of another thread, for timing
 * loops may have helpers; else one that an ancestor handed down. No two have the same name, nor has one
 * in two of its holds. 0: none. */
uint64_t krex_region_now(void);
uint64_t krex_region_name(int mark);
/* The audit of a region that is this process's own and has not ended, in whichever hold; else NULL. */
struct krex_audit *krex_region_audit(uint64_t region);
/* Whether it has the device for the second time, or more. */
bool krex_region_came_back(uint64_t region);

/* How many submissions this process made. */
uint64_t krex_submissions(void);

#endif
