/* SPDX-License-Identifier: Apache-2.0
 *
 * What the hooks tell the drain: contexts, captures; and what the drain needs of the driver. None of
 * these functions changes errno, and each may be called from any thread. Context tickets are in
 * ../ticket.h: they are no vendor's.
 *
 *   drain.c     the contexts, and the drain
 *   capture.c   the open captures
 */
#ifndef KREX_CUDA_DRAIN_H
#define KREX_CUDA_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../ticket.h"
#include "types.h"

/* loader.c: the driver's own function of that symbol; NULL: it has none. */
void *krex_cu_find_any(const char *symbol);

/* Contexts. */

enum { KREX_CU_NO_PRIMARY = -1 };

/* A context that this process may submit to: one that a call has made or handed out, or one that is
 * current at a thread's submission. Telling the same again is right, and costs a lock. `primary_of`:
 * the device whose primary context it is, if that is known, else KREX_CU_NO_PRIMARY. Of a green
 * context, which its primary one covers, tell both the primary one and the handle that
 * cuCtxFromGreenCtx gives. NULL: work is submitted to a context that cannot be found out, so this
 * process is never reported as drained again. */
void krex_cu_context_made(CUcontext context, CUdevice primary_of);
/* NULL: none was told. */
CUcontext krex_cu_primary_of(CUdevice device);
/* Around a call that destroys the context, or may (the release of a primary one): the drain leaves it
 * alone in between. `gone`: it is destroyed. NULL does nothing. */
void krex_cu_context_ending(CUcontext context);
void krex_cu_context_ended(CUcontext context, bool gone);

/* Calls that may wait inside the driver, and are past the gate (hooks.c, vendor.c). */
extern uint32_t krex_cu_inside;

/* Captures, counted from before their begin until after their end, whichever thread ends them.
 *
 *     uint64_t token = krex_cu_capture_enter();    waits at the heavy gate
 *     r = real(stream, ...);
 *     krex_cu_capture_begun(token, stream, r == CUDA_SUCCESS);
 *
 * A stream is named by the handle that it has without any _ptsz: NULL of a _ptsz function is
 * CU_STREAM_PER_THREAD. */
uint64_t krex_cu_capture_enter(void);
void krex_cu_capture_begun(uint64_t token, CUstream stream, bool began);
/* After the real call that ends one, whatever it returned. */
void krex_cu_capture_ended(CUstream stream, CUresult result);
/* After a real call that destroyed a stream. */
void krex_cu_stream_destroyed(CUstream stream);

/* What vendor.c lists. */
void krex_cu_drain_begin(void);
bool krex_cu_drain_done(void);
void krex_cu_drain_end(void);

#endif
