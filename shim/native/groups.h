/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezing many cgroups at once. A sibling runs until its freeze file is written, so what comes
 * between two writes is the handshake's time and the siblings' lead; and whether they stand still
 * can be looked at more often from here. Who owns the groups, and who thaws them if we die, is said
 * in krex/protect.
 */
#ifndef KREX_GROUPS_H
#define KREX_GROUPS_H

#include <stdint.h>

/* Writes 1 (freeze) or 0 (thaw) to each of the cgroup.freeze files, whatever becomes of the others.
 * Returns 0, or the errno of the first that failed. */
int krex_groups_write(const int *freeze, int count, int frozen);

/* Waits until all that run in the groups of these cgroup.events files stands still, at most ns.
 * Returns how many groups are left that may still run: the first so many of the array. */
int krex_groups_await_frozen(const int *events, int count, uint64_t ns);

#endif
