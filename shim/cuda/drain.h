/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's part of the drain and of the captures (../gpu/drain.h, ../gpu/capture.h): drain.c.
 */
#ifndef KREX_CUDA_DRAIN_H
#define KREX_CUDA_DRAIN_H

#include "../gpu/capture.h"
#include "../gpu/drain.h"
#include "../ticket.h"
#include "types.h"

extern struct krex_gpu krex_cu_gpu;

/* loader.c: the driver's own function of that symbol; NULL: it has none. */
void *krex_cu_find_any(const char *symbol);

enum { KREX_CU_NO_PRIMARY = KREX_GPU_NO_PRIMARY };

/* A context that this process may submit to: one that a call has made or handed out, or one that is
 * current at a thread's submission. Of a green context, which its primary one covers, tell both the
 * primary one and the handle that cuCtxFromGreenCtx gives. */
static inline void krex_cu_context_made(CUcontext context, CUdevice primary_of) {
    krex_gpu_context_made(&krex_cu_gpu, context, primary_of);
}

static inline CUcontext krex_cu_primary_of(CUdevice device) {
    return krex_gpu_primary_of(&krex_cu_gpu, device);
}

#endif
