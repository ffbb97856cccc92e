/* SPDX-License-Identifier: Apache-2.0
 *
 * What a vendor's folder gives the core.
 */
#ifndef KREX_VENDOR_H
#define KREX_VENDOR_H

#include <stdbool.h>
#include <stdint.h>

/* Draining: called from the drainer only. */

/* Starts a drain of all that this process has submitted. */
void krex_vendor_drain_begin(void);
/* True: all of it is complete (but for what waits on this process's own host). Never blocks. */
bool krex_vendor_drain_done(void);
/* Forgets the drain begun, complete or not. */
void krex_vendor_drain_end(void);

/* Lookups by name: called from any thread, at any time, before main too. */

/* A name that has a hook, or that could leave work on a device without one. Cheap for all others. */
bool krex_vendor_cares(const char *name);
/* The path is that of a library from which programs get the vendor's functions. */
bool krex_vendor_owns(const char *path);
/* The vendor's own function; NULL: no library that has it is loaded. */
void *krex_vendor_find(const char *name);
/* What to hand out in place of `real`, which the vendor's library has under that name. */
void *krex_vendor_hand_out(const char *name, void *real);

/* Submits `times` times to a stand-in for the driver that does nothing; through the hook, or not. */
void krex_vendor_stand_in(bool hooked, uint64_t times);

#endif
