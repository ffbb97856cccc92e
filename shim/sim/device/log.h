/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of what was on the devices: the file that `krex sim check` believes. docs/sim.md has its form.
 */
#ifndef KREX_SIM_LOG_H
#define KREX_SIM_LOG_H

#include "engine.h"

/* NULL, and why: errno. */
struct log *log_open(const char *path);
void log_interval(struct log *, const struct interval *, uint64_t now);
/* Somebody left, and may look at the log now: says up to when it is whole. */
void log_left(struct log *);
/* When what was written has to reach the file at the latest; NEVER: there is nothing. */
uint64_t log_due(const struct log *);
/* `covered`: nothing was on a device at that time, and what ended before has been told; 0: not so. */
void log_flush(struct log *, uint64_t covered);
void log_close(struct log *);

#endif
