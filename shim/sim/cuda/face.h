/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the face libcuda.so.1 share. Each entry point is defined once, without _ptsz or
 * _ptds: those forms come from api.def (stubs.c), and differ only in what cu_stream() makes of stream 0.
 * Every name that no file here defines is one that returns CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef KREX_SIM_CUDA_FACE_H
#define KREX_SIM_CUDA_FACE_H

#include "cuda/types.h"
#include "sim/driver/driver.h"

/* Prototypes of everything, so that a definition that differs from the header's does not compile. */
int krex_sim_device_number(CUdevice dev);

#pragma GCC visibility push(default)
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args) ret symbol params;
#include "cuda/api.def"
#undef KREX_CU_API
#pragma GCC visibility pop

CUresult cu_result(enum drv_result result);

/* The beginning of nearly every entry point: the driver is initialised, a context is current that lives,
 * and has no sticky error; *context is it. */
CUresult cu_enter(struct drv_context **context);

/* The same, and what the handle stands for: 0 and the two special ones too, in the current context. */
CUresult cu_stream(CUstream handle, struct drv_stream **stream);

/* These check that the driver is initialised, and the handle; a current context they don't need. */
CUresult cu_context(CUcontext handle, struct drv_context **context);
CUresult cu_event(CUevent handle, struct drv_event **event);
CUresult cu_device(CUdevice ordinal, struct drv_device **device);

CUdevice cu_ordinal(const struct drv_device *device);

/* Inside of a _ptsz or _ptds form stream 0 is the thread's own. stubs.c sets it. */
extern _Thread_local bool cu_per_thread;

#endif
