/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures, counted from before their begin until after their end, whichever thread ends them.
 *
 *     uint64_t token = krex_capture_enter();    waits at the heavy gate
 *     r = real(stream, ...);
 *     krex_capture_begun(vendor, token, stream, r is success);
 *
 * A stream is named by the handle that says which one it is wherever it is used: not by the null handle
 * of a function that takes that for the calling thread's own stream. None of these changes errno.
 */
#ifndef KREX_GPU_CAPTURE_H
#define KREX_GPU_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

struct krex_gpu;

uint64_t krex_capture_enter(void);
void krex_capture_begun(const struct krex_gpu *vendor, uint64_t token, const void *stream,
                        bool began);
/* After the real call that ends one, whether it succeeded or not. */
void krex_capture_ended(const struct krex_gpu *vendor, const void *stream, bool success);
/* After a real call that destroyed a stream. */
void krex_capture_stream_destroyed(const struct krex_gpu *vendor, const void *stream);
/* The context is destroyed, and its streams with it. */
void krex_captures_lost(const struct krex_gpu *vendor, const void *context);

#endif
