/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks: one body a kind (api.def), most of them in ../gpu/hooks.h.
 */
#include <errno.h>

#include "api.h"
#include "device.h"
#include "drain.h"

#define KREX_HOOK_REAL KREX_HIP_REAL
#define KREX_HOOK_GPU krex_hip_gpu
#define KREX_HOOK_SEE krex_hip_see
#define KREX_HOOK_SUCCESS hipSuccess
#define KREX_HOOK_NO_MEMORY hipErrorOutOfMemory
#include "../gpu/hooks.h"
#include "../gpu/timing.h"

/* --- submissions --- */

/* A captured call puts nothing on the device; held up, it would hold up the end of its capture, which
 * a region has to wait for. One that is refused for a capture's sake doesn't either. */
static bool is_captured(const void *stream) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipError_t before = krex_hip_before();
    hipError_t result = KREX_HIP_REAL(hipStreamIsCapturing)((hipStream_t)stream, &status);
    krex_hip_quietly(before, result);
    return result == hipSuccess ? status != hipStreamCaptureStatusNone
                                : result == hipErrorStreamCaptureImplicit;
}

/* A process that isn't attached by now has no device, or no controller. */
static unsigned int enter_slow(const void *stream) {
    unsigned int ticket = krex_hip_touch() ? KREX_WITH_TICKET : 0;
    if (!krex_load_relaxed(&krex_process.generation))
        return ticket;
    int saved = errno;
    bool mine = stream == KREX_HIP_NO_STREAM ? krex_gate_enter_slow()
                                             : krex_gate_enter_slow_unless(is_captured, stream);
    errno = saved;
    return mine | ticket;
}

/* What the functions of a form mean by no stream. */
#define KREX_STREAM_LEGACY(stream) (stream)
#define KREX_STREAM_SPT(stream) ((stream) ? (stream) : hipStreamPerThread)

#define KREX_HIP_SUBMIT(ret, symbol, flag, stream, params, args)                                   \
    KREX_HOOK_SUBMIT(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_HIP_SUBMIT_SYNC(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_SUBMIT_SYNC(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_HIP_SUBMIT_ALLOC(ret, symbol, flag, stream, params, args)                             \
    KREX_HOOK_SUBMIT_ALLOC(ret, symbol, KREX_STREAM_##flag(stream), params, args)

/* That the runtime calls back is no submission; what waits in a stream is the drain's business. */
#define KREX_HIP_SUBMIT_HOST KREX_HIP_SUBMIT
#define KREX_HIP_SUBMIT_WAIT KREX_HIP_SUBMIT
#define KREX_HIP_SUBMIT_EVENT KREX_HIP_SUBMIT

/* --- timing --- */

static bool is_null(const void *stream) { return !stream || stream == hipStreamLegacy; }

/* The null stream and every blocking one wait for each other. */
static bool orders(const void *stream, const void *other) {
    unsigned int flags = hipStreamNonBlocking;
    if (is_null(stream) == is_null(other))
        return is_null(stream);
    hipStream_t asked = (hipStream_t)(is_null(stream) ? other : stream);
    hipError_t before = krex_hip_before();
    krex_hip_quietly(before, KREX_HIP_REAL(hipStreamGetFlags)(asked, &flags));
    return !(flags & hipStreamNonBlocking);
}

#define KREX_HIP_SUBMIT_RECORD(ret, symbol, flag, stream, params, args)                            \
    KREX_HOOK_SUBMIT_RECORD(ret, symbol, event, KREX_STREAM_##flag(stream), params, args)
#define KREX_HIP_SUBMIT_JOIN(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_SUBMIT_JOIN(ret, symbol, event, KREX_STREAM_##flag(stream), params, args)

/* Either event may be missing. The first one is in front of the launch, which counts when it leaves the
 * gate; where the launch fails, neither is recorded. */
#define KREX_HIP_SUBMIT_TIMED(ret, symbol, flag, stream, params, args)                             \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HIP_REAL(symbol);                                             \
        bool starts = startEvent && before_record(startEvent, stream);                             \
        bool stops = stopEvent && before_record(stopEvent, stream);                                \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        ret result = real args;                                                                    \
        if (starts && result == hipSuccess)                                                        \
            krex_audit_recorded(startEvent, stream, orders);                                       \
        leave(pass);                                                                               \
        krex_audit_launch(stream);                                                                 \
        if (stops && result == hipSuccess)                                                         \
            krex_audit_recorded(stopEvent, stream, orders);                                        \
        return result;                                                                             \
    }

#define KREX_FLAGS_hipEventCreate 0
#define KREX_FLAGS_hipEventCreateWithFlags flags
#define KREX_HIP_TRACK_MADE(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_TRACK_MADE(ret, symbol, event, KREX_FLAGS_##symbol, params, args)
#define KREX_HIP_TRACK_GONE(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_TRACK_GONE(ret, symbol, event, params, args)
#define KREX_HIP_TRACK_READ(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_TRACK_READ(ret, symbol, ms, start, stop, params, args)

#define KREX_WAITED_hipCtxSynchronize(flag) NULL, NULL
#define KREX_WAITED_hipDeviceSynchronize(flag) NULL, NULL
#define KREX_WAITED_hipExecutionCtxSynchronize(flag) NULL, NULL
#define KREX_WAITED_hipStreamSynchronize(flag) KREX_STREAM_##flag(stream), NULL
#define KREX_WAITED_hipStreamSynchronize_spt(flag) KREX_STREAM_##flag(stream), NULL
#define KREX_WAITED_hipEventSynchronize(flag) NULL, event
#define KREX_HIP_TRACK_WAIT(ret, symbol, flag, stream, params, args)                               \
    KREX_HIP_WAIT(ret, symbol, KREX_WAITED_##symbol(flag), params, args)
#define KREX_HIP_WAIT(...) KREX_HOOK_TRACK_WAIT(__VA_ARGS__)

/* --- heavy calls --- */

#define KREX_BYTES_hipExtMallocWithFlags sizeBytes
#define KREX_BYTES_hipMalloc size
#define KREX_BYTES_hipMalloc3D ((uint64_t)extent.width * extent.height * extent.depth)
#define KREX_BYTES_hipMallocAsync size
#define KREX_BYTES_hipMallocFromPoolAsync size
#define KREX_BYTES_hipMallocManaged size
#define KREX_BYTES_hipMallocPitch ((uint64_t)width * height)
#define KREX_BYTES_hipMemAllocPitch ((uint64_t)widthInBytes * height)
#define KREX_BYTES_hipMemCreate size

static unsigned int heavy_enter(void) {
    if (krex_hip_touch())
        return KREX_WITH_TICKET;
    return krex_process.generation && krex_heavy_enter();
}

#define KREX_HIP_HEAVY(ret, symbol, flag, stream, params, args)                                    \
    KREX_HOOK_HEAVY(ret, symbol, stream, params, args)
#define KREX_HIP_HEAVY_LOAD(ret, symbol, flag, stream, params, args)                               \
    KREX_HOOK_HEAVY_LOAD(ret, symbol, stream, params, args)
#define KREX_HIP_HEAVY_ALLOC(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_HEAVY_ALLOC(ret, symbol, stream, params, args)

#define KREX_HIP_INIT(ret, symbol, flag, stream, params, args)                                     \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HIP_REAL(symbol);                                             \
        bool mine = krex_hip_init_enter();                                                         \
        ret result = real args;                                                                    \
        krex_hip_init_leave(mine);                                                                 \
        krex_hip_tell_if_absent(result);                                                           \
        return result;                                                                             \
    }

#define KREX_HIP_HEAVY_NEW_STREAM(ret, symbol, flag, stream, params, args)                         \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HIP_REAL(symbol);                                             \
        unsigned int pass = heavy_enter();                                                         \
        ret result = real args;                                                                    \
        if (result == hipSuccess && stream)                                                        \
            krex_hip_stream_made(*stream);                                                         \
        heavy_leave(pass);                                                                         \
        return result;                                                                             \
    }

#define KREX_HIP_HEAVY_STREAM(ret, symbol, flag, stream, params, args)                             \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HIP_REAL(symbol);                                             \
        unsigned int pass = heavy_enter();                                                         \
        bool known = krex_hip_stream_ending(stream);                                               \
        ret result = real args;                                                                    \
        if (result == hipSuccess)                                                                  \
            krex_capture_stream_destroyed(&krex_hip_gpu, stream);                                  \
        else if (known)                                                                            \
            krex_hip_stream_made(stream);                                                          \
        heavy_leave(pass);                                                                         \
        return result;                                                                             \
    }

/* --- devices --- */

#define KREX_HIP_DEVICE(ret, symbol, flag, stream, params, args)                                   \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        ret result = KREX_HIP_REAL(symbol) args;                                                   \
        if (result == hipSuccess)                                                                  \
            krex_hip_device_changed();                                                             \
        return result;                                                                             \
    }

#define KREX_DEVICE_hipDeviceReset krex_hip_current()
#define KREX_DEVICE_hipDevicePrimaryCtxReset krex_hip_handle(dev)

/* The device stays one that this process uses: its streams are gone, and what was captured there. */
#define KREX_HIP_RESET(ret, symbol, flag, stream, params, args)                                    \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HIP_REAL(symbol);                                             \
        unsigned int pass = heavy_enter();                                                         \
        void *device = KREX_DEVICE_##symbol;                                                       \
        krex_hip_streams_forgotten();                                                              \
        krex_gpu_context_ending(&krex_hip_gpu, device);                                            \
        ret result = real args;                                                                    \
        krex_gpu_context_ended(&krex_hip_gpu, device, false);                                      \
        if (result == hipSuccess)                                                                  \
            krex_captures_lost(&krex_hip_gpu, device);                                             \
        heavy_leave(pass);                                                                         \
        return result;                                                                             \
    }

/* --- captures --- */

#define KREX_HIP_CAPTURE(ret, symbol, flag, stream, params, args)                                  \
    KREX_HOOK_CAPTURE(ret, symbol, KREX_STREAM_##flag(stream), params, args)
#define KREX_HIP_CAPTURE_END(ret, symbol, flag, stream, params, args)                              \
    KREX_HOOK_CAPTURE_END(ret, symbol, KREX_STREAM_##flag(stream), params, args)

/* proc.c has these. */
#define KREX_HIP_RESOLVE(ret, symbol, flag, stream, params, args) KREX_HOOK ret symbol params;
#define KREX_HIP_NEVER(...)
#define KREX_HIP_PASS(...)

#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args)                                \
    KREX_HIP_##kind(ret, symbol, flag, stream, params, args)
#include "api.def"
#undef KREX_HIP_API

#define KREX_HOOKED(symbol) [KREX_LINE_##symbol] = (void *)symbol,
void *const krex_hip_hooks[KREX_HIP_LINES] = {
#define KREX_LIST_SUBMIT KREX_HOOKED
#define KREX_LIST_SUBMIT_SYNC KREX_HOOKED
#define KREX_LIST_SUBMIT_HOST KREX_HOOKED
#define KREX_LIST_SUBMIT_WAIT KREX_HOOKED
#define KREX_LIST_SUBMIT_EVENT KREX_HOOKED
#define KREX_LIST_SUBMIT_RECORD KREX_HOOKED
#define KREX_LIST_SUBMIT_JOIN KREX_HOOKED
#define KREX_LIST_SUBMIT_TIMED KREX_HOOKED
#define KREX_LIST_TRACK_MADE KREX_HOOKED
#define KREX_LIST_TRACK_GONE KREX_HOOKED
#define KREX_LIST_TRACK_READ KREX_HOOKED
#define KREX_LIST_TRACK_WAIT KREX_HOOKED
#define KREX_LIST_SUBMIT_ALLOC KREX_HOOKED
#define KREX_LIST_HEAVY KREX_HOOKED
#define KREX_LIST_HEAVY_LOAD KREX_HOOKED
#define KREX_LIST_HEAVY_ALLOC KREX_HOOKED
#define KREX_LIST_HEAVY_NEW_STREAM KREX_HOOKED
#define KREX_LIST_HEAVY_STREAM KREX_HOOKED
#define KREX_LIST_INIT KREX_HOOKED
#define KREX_LIST_DEVICE KREX_HOOKED
#define KREX_LIST_RESET KREX_HOOKED
#define KREX_LIST_CAPTURE KREX_HOOKED
#define KREX_LIST_CAPTURE_END KREX_HOOKED
#define KREX_LIST_RESOLVE KREX_HOOKED
#define KREX_LIST_NEVER(symbol)
#define KREX_LIST_PASS(symbol)
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) KREX_LIST_##kind(symbol)
#include "api.def"
#undef KREX_HIP_API
};
