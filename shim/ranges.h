/* SPDX-License-Identifier: Apache-2.0
 *
 * Named ranges as marks, of whatever library (nvtx.c, roctx.c): KREX_REGION=nvtx:NAME, or
 * nvtx:NAME@DOMAIN. A range that is asked for arms (arm.h) until it ends.
 */
#ifndef KREX_RANGES_H
#define KREX_RANGES_H

#include <stdbool.h>

/* A range that is asked for. */
struct krex_range;

enum { KREX_RANGE_NAME_SIZE = 128 };

/* Whether any is; reads KREX_REGION at first. */
bool krex_ranges_asked(void);
/* The range of that name, in whatever domain; NULL: nobody asks for it. */
const struct krex_range *krex_range_of(const char *name);
/* Whether it is asked for in the domain of that name; NULL: in the one without a name. */
bool krex_range_is_in(const struct krex_range *range, const char *domain);

void krex_range_arm(const struct krex_range *range);

/* Ranges of a thread, pushed and popped in reverse, each domain for itself. NULL: one that nobody asks
 * for. Both return the range's level; krex_range_pop -1 if there is none. */
int krex_range_push(const void *domain, const struct krex_range *range);
int krex_range_pop(const void *domain);

#endif
