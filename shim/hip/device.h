/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that this process uses. None of these functions changes errno.
 */
#ifndef KREX_HIP_DEVICE_H
#define KREX_HIP_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "types.h"

/* What the drain calls a device (../gpu/drain.h): never NULL. */
static inline void *krex_hip_handle(int device) { return (void *)((uintptr_t)device + 1); }
static inline int krex_hip_device_of(const void *handle) { return (int)(uintptr_t)handle - 1; }
/* The calling thread's; NULL: there is none. */
void *krex_hip_current(void);

/* Before a call that touches the calling thread's device: registers the process for it. True: it is
 * the process's first there, and has a ticket: krex_context_leave after it. */
bool krex_hip_touch(void);
/* The same, and gives the ticket back. */
void krex_hip_see(void);
/* After a call that may have made another device the thread's. */
void krex_hip_device_changed(void);

/* Around a call that may initialise the runtime: a heavy call if it does. */
bool krex_hip_init_enter(void);
void krex_hip_init_leave(bool mine);

/* absent.c: what such a call gave. Under `krex run`, the first that finds no GPU is told of on stderr. */
void krex_hip_tell_if_absent(hipError_t result);

#endif
