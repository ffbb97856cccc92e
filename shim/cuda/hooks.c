/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks: one body a kind (api.def), most of them in ../gpu/hooks.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "api.h"
#include "drain.h"

#define KREX_HOOK_REAL KREX_CU_REAL
#define KREX_HOOK_GPU krex_cu_gpu
#define KREX_HOOK_SEE krex_cu_see_current
#define KREX_HOOK_SUCCESS CUDA_SUCCESS
#define KREX_HOOK_NO_MEMORY CUDA_ERROR_OUT_OF_MEMORY
#include "../gpu/hooks.h"
#include "../gpu/timing.h"

/* --- submissions --- */

/* A captured call puts nothing on the device; held up, it would hold up the end of its capture, which
 * a region has to wait for. One that is refused for a capture's sake doesn't either. */
static bool is_captured(const void *stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = KREX_CU_REAL(cuStreamIsCapturing)((CUstream)stream, &status);
    return result == CUDA_SUCCESS ? status != CU_STREAM_CAPTURE_STATUS_NONE
                                  : result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* A process that isn't attached by now has no context, or no controller. */
static unsigned int enter_slow(const void *stream) {
    krex_cu_see_current();
    if (!krex_load_relaxed(&krex_process.generation))
        return false;
    int saved = errno;
    bool mine = stream == KREX_CU_NO_STREAM ? krex_gate_enter_slow()
                                            : krex_gate_enter_slow_unless(is_captured, stream);
    errno = saved;
    return mine;
}

/* What the functions of a per-thread form mean by no stream. */
#define KREX_STREAM_LEGACY(stream) (stream)
#define KREX_STREAM_PTDS(stream) (stream)
#define KREX_STREAM_PTSZ(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

#define KREX_CU_SUBMIT(ret, symbol, flag, stream, params, args)                                    \
    KREX_HOOK_SUBMIT(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_CU_SUBMIT_SYNC(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_SUBMIT_SYNC(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_CU_SUBMIT_ALLOC(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_SUBMIT_ALLOC(ret, symbol, KREX_STREAM_##flag(stream), params, args)

/* That the driver calls back is no submission, and what waits in a stream is the drain's business. */
#define KREX_CU_SUBMIT_HOST KREX_CU_SUBMIT
#define KREX_CU_SUBMIT_WAIT KREX_CU_SUBMIT
#define KREX_CU_SUBMIT_EVENT KREX_CU_SUBMIT

#define KREX_BYTES_cuMemAlloc bytesize
#define KREX_BYTES_cuMemAlloc_v2 bytesize
#define KREX_BYTES_cuMemAllocManaged bytesize
#define KREX_BYTES_cuMemAllocPitch ((uint64_t)WidthInBytes * Height)
#define KREX_BYTES_cuMemAllocPitch_v2 ((uint64_t)WidthInBytes * Height)
#define KREX_BYTES_cuMemCreate size
#define KREX_BYTES_cuMemAllocAsync bytesize
#define KREX_BYTES_cuMemAllocAsync_ptsz bytesize
#define KREX_BYTES_cuMemAllocFromPoolAsync bytesize
#define KREX_BYTES_cuMemAllocFromPoolAsync_ptsz bytesize

/* --- timing --- */

static bool is_legacy(const void *stream) { return !stream || stream == CU_STREAM_LEGACY; }

/* The legacy stream and every blocking one wait for each other. */
static bool orders(const void *stream, const void *other) {
    unsigned int flags = CU_STREAM_NON_BLOCKING;
    if (is_legacy(stream) == is_legacy(other))
        return is_legacy(stream);
    KREX_CU_REAL(cuStreamGetFlags)((CUstream)(is_legacy(stream) ? other : stream), &flags);
    return !(flags & CU_STREAM_NON_BLOCKING);
}

#define KREX_CU_SUBMIT_RECORD(ret, symbol, flag, stream, params, args)                             \
    KREX_HOOK_SUBMIT_RECORD(ret, symbol, hEvent, KREX_STREAM_##flag(stream), params, args)
#define KREX_CU_SUBMIT_JOIN(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_SUBMIT_JOIN(ret, symbol, hEvent, KREX_STREAM_##flag(stream), params, args)
#define KREX_CU_TRACK_MADE(ret, symbol, flag, stream, params, args)                                \
    KREX_HOOK_TRACK_MADE(ret, symbol, phEvent, Flags, params, args)
#define KREX_CU_TRACK_GONE(ret, symbol, flag, stream, params, args)                                \
    KREX_HOOK_TRACK_GONE(ret, symbol, hEvent, params, args)
#define KREX_CU_TRACK_READ(ret, symbol, flag, stream, params, args)                                \
    KREX_HOOK_TRACK_READ(ret, symbol, pMilliseconds, hStart, hEnd, params, args)

#define KREX_WAITED_cuCtxSynchronize(flag) NULL, NULL
#define KREX_WAITED_cuCtxSynchronize_v2(flag) NULL, NULL
#define KREX_WAITED_cuStreamSynchronize(flag) KREX_STREAM_##flag(hStream), NULL
#define KREX_WAITED_cuStreamSynchronize_ptsz(flag) KREX_STREAM_##flag(hStream), NULL
#define KREX_WAITED_cuEventSynchronize(flag) NULL, hEvent
#define KREX_CU_TRACK_WAIT(ret, symbol, flag, stream, params, args)                                \
    KREX_CU_WAIT(ret, symbol, KREX_WAITED_##symbol(flag), params, args)
#define KREX_CU_WAIT(...) KREX_HOOK_TRACK_WAIT(__VA_ARGS__)

/* --- heavy calls --- */

/* A process is registered for the device of its first context, unless its command has one: before
 * that there is nothing to be heavy on. */
static unsigned int heavy_enter(void) {
    if (!krex_process.generation && getenv("KREX_COMMAND"))
        return krex_heavy_enter();
    krex_cu_see_current();
    return krex_process.generation && krex_heavy_enter();
}

#define KREX_CU_HEAVY(ret, symbol, flag, stream, params, args)                                     \
    KREX_HOOK_HEAVY(ret, symbol, stream, params, args)
#define KREX_CU_HEAVY_LOAD(ret, symbol, flag, stream, params, args)                                \
    KREX_HOOK_HEAVY_LOAD(ret, symbol, stream, params, args)
#define KREX_CU_HEAVY_ALLOC(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_HEAVY_ALLOC(ret, symbol, stream, params, args)
#define KREX_CU_HEAVY_STREAM(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_HEAVY_STREAM(ret, symbol, stream, params, args)

/* --- contexts --- */

/* The making of a context on a device, or the handing out of its primary one. */
struct making {
    CUdevice device;
    bool heavy; /* a ticket was taken, and the gate passed */
};

static struct making begin_making(CUdevice device) {
    char key[KREX_DEVICE_KEY_SIZE];
    struct making m = {device, false};
    if (krex_cu_context_on(device, key))
        m.heavy = krex_context_enter(key);
    return m;
}

/* An active primary context is only handed out: that makes nothing, and runtimes do it all the time. */
static struct making begin_retaining(CUdevice device) {
    unsigned int flags;
    int active = 0;
    KREX_CU_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    return active ? (struct making){device, false} : begin_making(device);
}

static CUresult end_making(struct making m, CUresult result, const CUcontext *made,
                           CUdevice primary) {
    if (result == CUDA_SUCCESS && made)
        krex_cu_context_made(*made, primary);
    krex_context_leave(m.heavy);
    return result;
}

/* A green context is on top of the primary one, which it keeps, and whose drain covers it. */
static CUresult end_making_green(struct making m, CUresult result) {
    CUcontext primary = NULL;
    if (result == CUDA_SUCCESS && !krex_cu_primary_of(m.device) &&
        KREX_CU_REAL(cuDevicePrimaryCtxRetain)(&primary, m.device) == CUDA_SUCCESS)
        KREX_CU_REAL(cuDevicePrimaryCtxRelease_v2)(m.device);
    return end_making(m, result, primary ? &primary : NULL, m.device);
}

#define KREX_CU_MAKE(symbol, args, context, device)                                                \
    krex_fn_##symbol real = KREX_CU_REAL(symbol);                                                  \
    struct making m = begin_making(device);                                                        \
    return end_making(m, real args, context, KREX_CU_NO_PRIMARY)

#define KREX_MAKE_cuCtxCreate(args) KREX_CU_MAKE(cuCtxCreate, args, pctx, dev)
#define KREX_MAKE_cuCtxCreate_v2(args) KREX_CU_MAKE(cuCtxCreate_v2, args, pctx, dev)
#define KREX_MAKE_cuCtxCreate_v3(args) KREX_CU_MAKE(cuCtxCreate_v3, args, pctx, dev)
#define KREX_MAKE_cuCtxCreate_v4(args) KREX_CU_MAKE(cuCtxCreate_v4, args, pctx, dev)
#define KREX_MAKE_cuGLCtxCreate(args) KREX_CU_MAKE(cuGLCtxCreate, args, pCtx, device)
#define KREX_MAKE_cuGLCtxCreate_v2(args) KREX_CU_MAKE(cuGLCtxCreate_v2, args, pCtx, device)
#define KREX_MAKE_cuVDPAUCtxCreate(args) KREX_CU_MAKE(cuVDPAUCtxCreate, args, pCtx, device)
#define KREX_MAKE_cuVDPAUCtxCreate_v2(args) KREX_CU_MAKE(cuVDPAUCtxCreate_v2, args, pCtx, device)

#define KREX_MAKE_cuDevicePrimaryCtxRetain(args)                                                   \
    krex_fn_cuDevicePrimaryCtxRetain real = KREX_CU_REAL(cuDevicePrimaryCtxRetain);                \
    struct making m = begin_retaining(dev);                                                        \
    return end_making(m, real args, pctx, dev)

#define KREX_MAKE_cuGreenCtxCreate(args)                                                           \
    krex_fn_cuGreenCtxCreate real = KREX_CU_REAL(cuGreenCtxCreate);                                \
    struct making m = begin_making(dev);                                                           \
    return end_making_green(m, real args)

#define KREX_MAKE_cuCtxFromGreenCtx(args)                                                          \
    krex_fn_cuCtxFromGreenCtx real = KREX_CU_REAL(cuCtxFromGreenCtx);                              \
    struct making m = {0};                                                                         \
    return end_making(m, real args, pContext, KREX_CU_NO_PRIMARY)

#define KREX_CU_CONTEXT(ret, symbol, flag, stream, params, args)                                   \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params { KREX_MAKE_##symbol(args); }

/* The drain lets go of the context only behind the gate: until then its work is drained. */
struct ending {
    CUcontext context;
    unsigned int pass;
};

static struct ending begin_ending(CUcontext context) {
    struct ending e = {context, heavy_enter()};
    krex_gpu_context_ending(&krex_cu_gpu, context);
    return e;
}

static CUresult end_ending(struct ending e, CUresult result, bool gone) {
    krex_gpu_context_ended(&krex_cu_gpu, e.context, result == CUDA_SUCCESS && gone);
    heavy_leave(e.pass);
    return result;
}

static bool is_inactive(CUdevice device) {
    unsigned int flags;
    int active = 0;
    CUresult result = KREX_CU_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    return result != CUDA_SUCCESS || !active;
}

static CUcontext context_of_green(CUgreenCtx green) {
    CUcontext context = NULL;
    if (KREX_CU_REAL(cuCtxFromGreenCtx)(&context, green) != CUDA_SUCCESS)
        return NULL;
    return context;
}

#define KREX_CU_END(symbol, args, of, gone)                                                        \
    krex_fn_##symbol real = KREX_CU_REAL(symbol);                                                  \
    struct ending e = begin_ending(of);                                                            \
    CUresult result = real args;                                                                   \
    return end_ending(e, result, gone)

#define KREX_END_cuCtxDestroy(args) KREX_CU_END(cuCtxDestroy, args, ctx, true)
#define KREX_END_cuCtxDestroy_v2(args) KREX_CU_END(cuCtxDestroy_v2, args, ctx, true)
#define KREX_END_cuCtxDetach(args) KREX_CU_END(cuCtxDetach, args, ctx, true)
#define KREX_END_cuDevicePrimaryCtxRelease(args)                                                   \
    KREX_CU_END(cuDevicePrimaryCtxRelease, args, krex_cu_primary_of(dev), is_inactive(dev))
#define KREX_END_cuDevicePrimaryCtxRelease_v2(args)                                                \
    KREX_CU_END(cuDevicePrimaryCtxRelease_v2, args, krex_cu_primary_of(dev), is_inactive(dev))
#define KREX_END_cuDevicePrimaryCtxReset(args)                                                     \
    KREX_CU_END(cuDevicePrimaryCtxReset, args, krex_cu_primary_of(dev), true)
#define KREX_END_cuDevicePrimaryCtxReset_v2(args)                                                  \
    KREX_CU_END(cuDevicePrimaryCtxReset_v2, args, krex_cu_primary_of(dev), true)
#define KREX_END_cuGreenCtxDestroy(args)                                                           \
    KREX_CU_END(cuGreenCtxDestroy, args, context_of_green(hCtx), true)

#define KREX_CU_CONTEXT_END(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params { KREX_END_##symbol(args); }

/* --- captures --- */

#define KREX_CU_CAPTURE(ret, symbol, flag, stream, params, args)                                   \
    KREX_HOOK_CAPTURE(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_CU_CAPTURE_END(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_CAPTURE_END(ret, symbol, KREX_STREAM_##flag(stream), params, args)

/* proc.c has these. */
#define KREX_CU_RESOLVE(ret, symbol, flag, stream, params, args) KREX_HOOK ret symbol params;
#define KREX_CU_NEVER(...)
#define KREX_CU_PASS(...)

#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    KREX_CU_##kind(ret, symbol, flag, stream, params, args)
#include "api.def"
#undef KREX_CU_API

#define KREX_HOOKED(symbol) [KREX_LINE_##symbol] = (void *)symbol,
void *const krex_cu_hooks[KREX_CU_LINES] = {
#define KREX_LIST_SUBMIT KREX_HOOKED
#define KREX_LIST_SUBMIT_SYNC KREX_HOOKED
#define KREX_LIST_SUBMIT_HOST KREX_HOOKED
#define KREX_LIST_SUBMIT_WAIT KREX_HOOKED
#define KREX_LIST_SUBMIT_EVENT KREX_HOOKED
#define KREX_LIST_SUBMIT_RECORD KREX_HOOKED
#define KREX_LIST_SUBMIT_JOIN KREX_HOOKED
#define KREX_LIST_SUBMIT_ALLOC KREX_HOOKED
#define KREX_LIST_TRACK_MADE KREX_HOOKED
#define KREX_LIST_TRACK_GONE KREX_HOOKED
#define KREX_LIST_TRACK_READ KREX_HOOKED
#define KREX_LIST_TRACK_WAIT KREX_HOOKED
#define KREX_LIST_HEAVY KREX_HOOKED
#define KREX_LIST_HEAVY_LOAD KREX_HOOKED
#define KREX_LIST_HEAVY_ALLOC KREX_HOOKED
#define KREX_LIST_HEAVY_STREAM KREX_HOOKED
#define KREX_LIST_CONTEXT KREX_HOOKED
#define KREX_LIST_CONTEXT_END KREX_HOOKED
#define KREX_LIST_CAPTURE KREX_HOOKED
#define KREX_LIST_CAPTURE_END KREX_HOOKED
#define KREX_LIST_RESOLVE KREX_HOOKED
#define KREX_LIST_NEVER(symbol)
#define KREX_LIST_PASS(symbol)
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    KREX_LIST_##kind(symbol)
#include "api.def"
#undef KREX_CU_API
};
