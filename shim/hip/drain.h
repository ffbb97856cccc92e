/* SPDX-License-Identifier: Apache-2.0
 *
 * HIP's part of the drain and of the captures (../gpu/drain.h, ../gpu/capture.h).
 */
#ifndef KREX_HIP_DRAIN_H
#define KREX_HIP_DRAIN_H

#include <stdbool.h>

#include "../gpu/drain.h"
#include "types.h"

/* drain.c. Its contexts are devices (device.h). */
extern struct krex_gpu krex_hip_gpu;

/* stream.c */

/* A stream that the program has made. */
void krex_hip_stream_made(hipStream_t stream);
/* Before a call that destroys it: it is not asked about any more. True: it was known. */
bool krex_hip_stream_ending(hipStream_t stream);
/* The same for all, where there is no telling which are destroyed: the drain waits for the others by
 * the device. */
void krex_hip_streams_forgotten(void);
/* For the drainer: all known streams are empty, as `query` says. */
bool krex_hip_streams_done(hipError_t (*query)(hipStream_t));

#endif
