/* SPDX-License-Identifier: Apache-2.0
 *
 * The making of a context: a heavy call that needs a ticket as well. A driver makes contexts under a
 * lock of the whole machine and disturbs every device meanwhile, so they are made one at a time, and
 * none is begun while somebody acquires a region. The controller hands the tickets out
 * (krex/controller/tickets.py).
 *
 *     bool mine = krex_context_enter(device_key);
 *     r = real(...);
 *     krex_context_leave(mine);
 *
 * A ticket is the process's: its threads take turns, and what a thread that has one calls inside is
 * nested. It is no lock: who waits for one longer than 10 s goes on without, only announced.
 */
#ifndef KREX_TICKET_H
#define KREX_TICKET_H

#include <stdbool.h>

/* Takes a ticket and passes the heavy gate: in place of krex_heavy_enter, and not inside of it. False:
 * nothing to leave, because the call is nested, or the process not attached. */
bool krex_context_enter(const char *device_key);
void krex_context_leave(bool mine);

#endif
