/* SPDX-License-Identifier: Apache-2.0
 *
 * What a vendor's folder gives the core. The core calls these from the drainer only.
 */
#ifndef KREX_VENDOR_H
#define KREX_VENDOR_H

#include <stdbool.h>

/* Starts a drain of all that this process has submitted. */
void krex_vendor_drain_begin(void);
/* True: all of it is complete (but for what waits on this process's own host). Never blocks. */
bool krex_vendor_drain_done(void);
/* Forgets the drain begun, complete or not. */
void krex_vendor_drain_end(void);

#endif
