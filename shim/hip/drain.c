/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains a device. The runtime has no event for all of a device, and not every stream is known: some
 * are each thread's own, or are made past the hooks. So the last word is a wait for the whole device,
 * in the drainer. But while that waits for a queue, the runtime holds the queue's lock, and what the
 * program does there waits as well, its queries too: a program whose kernel waits for the host, which
 * wants to launch or ask something first, would wait for ever. So the streams that are known are asked
 * one by one, which waits for nothing, and the null stream after all others, because asking about it
 * orders it behind what is not complete there; the wait begins when they are empty.
 *
 * Any such question may invalidate a capture. Faults end a process; an error that stays says that the
 * device has nothing of ours any more.
 */
#include "drain.h"

#include "api.h"
#include "device.h"

static struct {
    hipError_t (*exchange_mode)(hipStreamCaptureMode *); /* NULL: before ROCm 5.0 */
    hipError_t (*set_device)(int);
    hipError_t (*query)(hipStream_t);
    hipError_t (*synchronize)(void);
} runtime;

static __thread bool prepared; /* of the drainer: its capture mode, and `runtime` is filled */

static bool fill_runtime(void) {
    runtime.exchange_mode = krex_hip_find_any("hipThreadExchangeStreamCaptureMode");
    runtime.set_device = krex_hip_find_any("hipSetDevice");
    runtime.query = krex_hip_find_any("hipStreamQuery");
    runtime.synchronize = krex_hip_find_any("hipDeviceSynchronize");
    return runtime.set_device && runtime.query && runtime.synchronize;
}

/* Else a capture that no hook has seen might forbid the drainer to ask. */
static bool be_relaxed(void) {
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    return !runtime.exchange_mode || runtime.exchange_mode(&mode) == hipSuccess;
}

static bool prepare(void) {
    if (!prepared)
        prepared = fill_runtime() && be_relaxed();
    return prepared;
}

static bool is_dead(hipError_t r) {
    return r == hipErrorECCNotCorrectable || r == hipErrorIllegalAddress ||
           r == hipErrorLaunchTimeOut || r == hipErrorContextIsDestroyed || r == hipErrorAssert ||
           r == hipErrorLaunchFailure;
}

static bool is_refusal(hipError_t r) {
    return r >= hipErrorStreamCaptureUnsupported && r <= hipErrorStreamCaptureWrongThread;
}

static hipError_t ask(const struct krex_gpu_context *c, bool may_wait) {
    hipError_t r = runtime.set_device(krex_hip_device_of(c->handle));
    if (r == hipSuccess && !krex_hip_streams_done(runtime.query))
        return hipErrorNotReady;
    if (r == hipSuccess)
        r = runtime.query(KREX_HIP_NULL_STREAM);
    if (r == hipSuccess)
        r = may_wait ? runtime.synchronize() : hipErrorNotReady;
    return r;
}

static enum krex_gpu_state visit(struct krex_gpu_context *c, bool may_wait) {
    hipError_t r = ask(c, may_wait);
    if (r == hipSuccess || is_dead(r))
        return KREX_GPU_DRAINED;
    return is_refusal(r) ? KREX_GPU_REFUSED : c->state;
}

static bool is_capturing(const void *stream) {
    hipError_t (*get)(hipStream_t, hipStreamCaptureStatus *) =
        krex_hip_find_any("hipStreamIsCapturing");
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    return get && get((hipStream_t)stream, &status) == hipSuccess &&
           status != hipStreamCaptureStatusNone;
}

struct krex_gpu krex_hip_gpu = {
    .prepare = prepare,
    .visit = visit,
    .per_thread_stream = hipStreamPerThread,
    .current = krex_hip_current,
    .is_capturing = is_capturing,
};
