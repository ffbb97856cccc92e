/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks: one body a kind (api.def). Each finds the driver's function before it announces, because
 * the first lookup takes the loader's lock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../client.h"
#include "../gate.h"
#include "api.h"
#include "drain.h"

#define HOOK __attribute__((visibility("default")))

/* --- submissions --- */

/* A captured call puts nothing on the device; held up, it would hold up the end of its capture, which
 * a region has to wait for. One that is refused for a capture's sake doesn't either. */
static bool is_captured(const void *stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = KREX_CU_REAL(cuStreamIsCapturing)((CUstream)stream, &status);
    return result == CUDA_SUCCESS ? status != CU_STREAM_CAPTURE_STATUS_NONE
                                  : result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* Where the fast path gave up. A process that isn't attached by now has no context, or no controller. */
static __attribute__((noinline, cold)) bool enter_slow(CUstream stream) {
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

#define KREX_CU_ENTER(flag, stream)                                                                \
    (__builtin_expect(krex_gate_enter_fast(), 1) || enter_slow(KREX_STREAM_##flag(stream)))

#define KREX_CU_SUBMIT(ret, symbol, flag, stream, params, args)                                    \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = KREX_CU_ENTER(flag, stream);                                                   \
        ret result = real args;                                                                    \
        krex_gate_leave(mine);                                                                     \
        return result;                                                                             \
    }

/* That the driver calls back is no submission, and what waits in a stream is the drain's business. */
#define KREX_CU_SUBMIT_HOST KREX_CU_SUBMIT
#define KREX_CU_SUBMIT_WAIT KREX_CU_SUBMIT
#define KREX_CU_SUBMIT_EVENT KREX_CU_SUBMIT

/* Announces its submission, not its wait: see vendor.c. It is counted before it leaves the gate: who
 * sees the retraction sees the count. */
#define KREX_CU_SUBMIT_SYNC(ret, symbol, flag, stream, params, args)                               \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = KREX_CU_ENTER(flag, stream);                                                   \
        if (mine)                                                                                  \
            krex_add_seq_cst(&krex_cu_inside, 1);                                                  \
        krex_gate_leave(mine);                                                                     \
        ret result = real args;                                                                    \
        if (mine)                                                                                  \
            krex_add_seq_cst(&krex_cu_inside, -1);                                                 \
        return result;                                                                             \
    }

/* --- memory --- */

/* A program that is refused memory while others have some is not wrong: whoever judges it is told. */
static __attribute__((noinline, cold)) void note_refusal(uint64_t bytes) {
    char text[24];
    int saved = errno;
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (krex_process.generation)
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "allocation_refused", text);
    errno = saved;
}

static CUresult allocated(CUresult result, uint64_t bytes) {
    if (__builtin_expect(result == CUDA_ERROR_OUT_OF_MEMORY, 0))
        note_refusal(bytes);
    return result;
}

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

#define KREX_CU_SUBMIT_ALLOC(ret, symbol, flag, stream, params, args)                              \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = KREX_CU_ENTER(flag, stream);                                                   \
        ret result = real args;                                                                    \
        krex_gate_leave(mine);                                                                     \
        return allocated(result, KREX_BYTES_##symbol);                                             \
    }

/* --- heavy calls --- */

/* A process is registered for the device of its first context, unless its command has one: before
 * that there is nothing to be heavy on. */
static bool heavy_enter(void) {
    if (!krex_process.generation && getenv("KREX_COMMAND"))
        return krex_heavy_enter();
    krex_cu_see_current();
    return krex_process.generation && krex_heavy_enter();
}

#define KREX_CU_HEAVY(ret, symbol, flag, stream, params, args)                                     \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = heavy_enter();                                                                 \
        ret result = real args;                                                                    \
        krex_heavy_leave(mine);                                                                    \
        return result;                                                                             \
    }

#define KREX_CU_HEAVY_ALLOC(ret, symbol, flag, stream, params, args)                               \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = heavy_enter();                                                                 \
        ret result = real args;                                                                    \
        krex_heavy_leave(mine);                                                                    \
        return allocated(result, KREX_BYTES_##symbol);                                             \
    }

#define KREX_CU_HEAVY_STREAM(ret, symbol, flag, stream, params, args)                              \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        bool mine = heavy_enter();                                                                 \
        ret result = real args;                                                                    \
        if (result == CUDA_SUCCESS)                                                                \
            krex_cu_stream_destroyed(stream);                                                      \
        krex_heavy_leave(mine);                                                                    \
        return result;                                                                             \
    }

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
    HOOK ret symbol params;                                                                        \
    ret symbol params { KREX_MAKE_##symbol(args); }

/* The drain lets go of the context only behind the gate: until then its work is drained. */
struct ending {
    CUcontext context;
    bool heavy;
};

static struct ending begin_ending(CUcontext context) {
    struct ending e = {context, heavy_enter()};
    krex_cu_context_ending(context);
    return e;
}

static CUresult end_ending(struct ending e, CUresult result, bool gone) {
    krex_cu_context_ended(e.context, result == CUDA_SUCCESS && gone);
    krex_heavy_leave(e.heavy);
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
    HOOK ret symbol params;                                                                        \
    ret symbol params { KREX_END_##symbol(args); }

/* --- captures --- */

#define KREX_CU_CAPTURE(ret, symbol, flag, stream, params, args)                                   \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_CU_REAL(symbol);                                              \
        krex_cu_see_current();                                                                     \
        uint64_t token = krex_cu_capture_enter();                                                  \
        ret result = real args;                                                                    \
        krex_cu_capture_begun(token, KREX_STREAM_##flag(stream), result == CUDA_SUCCESS);          \
        return result;                                                                             \
    }

#define KREX_CU_CAPTURE_END(ret, symbol, flag, stream, params, args)                               \
    HOOK ret symbol params;                                                                        \
    ret symbol params {                                                                            \
        ret result = KREX_CU_REAL(symbol) args;                                                    \
        krex_cu_capture_ended(KREX_STREAM_##flag(stream), result);                                 \
        return result;                                                                             \
    }

/* proc.c has these. */
#define KREX_CU_RESOLVE(ret, symbol, flag, stream, params, args) HOOK ret symbol params;
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
#define KREX_LIST_SUBMIT_ALLOC KREX_HOOKED
#define KREX_LIST_HEAVY KREX_HOOKED
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
