/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains a context by an event in it, for all that was submitted to it, polled. Drivers before 12.5
 * have no such event: there the drainer waits in the driver, context by context. Where a request is
 * withdrawn meanwhile, it comes back when the work is done and then looks for the next one, which may
 * have missed its deadline by then, but is not lost.
 *
 * Such an event, or such a wait, invalidates every capture in its context. A context whose work failed
 * is dead and has nothing outstanding: it counts as drained.
 */
#include "drain.h"

enum {
    INVALID_CONTEXT = 201,
    ECC_UNCORRECTABLE = 214,
    NVLINK_UNCORRECTABLE = 220,
    CONTAINED = 226,
    INVALID_HANDLE = 400,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_TIMEOUT = 702,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    HARDWARE_STACK_ERROR = 714,
    LAUNCH_FAILED = 719,
    TENSOR_MEMORY_LEAK = 721,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    EXTERNAL_DEVICE = 911,
    EVENT_DISABLE_TIMING = 2,
};

static struct {
    CUresult (*exchange_mode)(CUstreamCaptureMode *);
    CUresult (*set_current)(CUcontext);
    CUresult (*synchronize)(void);
    CUresult (*record)(CUcontext, CUevent); /* NULL: the driver cannot */
    CUresult (*create)(CUevent *, unsigned int);
    CUresult (*query)(CUevent);
} driver;

static __thread bool relaxed; /* of the drainer: its capture mode, and `driver` is filled */

static bool fill_driver(void) {
    driver.exchange_mode = krex_cu_find_any("cuThreadExchangeStreamCaptureMode");
    driver.set_current = krex_cu_find_any("cuCtxSetCurrent");
    driver.synchronize = krex_cu_find_any("cuCtxSynchronize");
    driver.record = krex_cu_find_any("cuCtxRecordEvent");
    driver.create = krex_cu_find_any("cuEventCreate");
    driver.query = krex_cu_find_any("cuEventQuery");
    return driver.exchange_mode && driver.set_current && driver.synchronize && driver.create &&
           driver.query;
}

/* Else a capture of a thread's that no hook has seen might forbid the drainer to ask for an event. */
static bool be_relaxed(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!relaxed)
        relaxed = fill_driver() && driver.exchange_mode(&mode) == CUDA_SUCCESS;
    return relaxed;
}

/* The context ended by a fault, or is gone: either way nothing of it is on the device any more. */
static bool is_dead(CUresult r) {
    switch (r) {
    case INVALID_CONTEXT:
    case ECC_UNCORRECTABLE:
    case NVLINK_UNCORRECTABLE:
    case CONTAINED:
    case ILLEGAL_ADDRESS:
    case LAUNCH_TIMEOUT:
    case CONTEXT_IS_DESTROYED:
    case ASSERT:
    case TENSOR_MEMORY_LEAK:
    case EXTERNAL_DEVICE:
        return true;
    default:
        return r >= HARDWARE_STACK_ERROR && r <= LAUNCH_FAILED;
    }
}

static bool is_refusal(CUresult r) {
    return r >= STREAM_CAPTURE_UNSUPPORTED && r <= STREAM_CAPTURE_WRONG_THREAD;
}

static CUresult record(struct krex_gpu_context *c) {
    CUevent event = c->event;
    bool old = event;
    CUresult r = old ? CUDA_SUCCESS : driver.create(&event, EVENT_DISABLE_TIMING);
    c->event = event;
    if (r == CUDA_SUCCESS)
        r = driver.record(c->handle, event);
    if (r == INVALID_HANDLE && old) /* a context with this handle has ended, and nobody told us */
        c->event = NULL;
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        driver.record = NULL;
    return r;
}

/* With the context current in the drainer. */
static CUresult advance(struct krex_gpu_context *c, enum krex_gpu_state *state, bool may_wait) {
    CUresult r = CUDA_ERROR_NOT_READY;
    if (*state == KREX_GPU_ASKED && driver.record) {
        r = record(c);
        if (r == CUDA_SUCCESS)
            *state = KREX_GPU_UNDER_EVENT;
        else if (driver.record)
            return r;
    }
    if (*state == KREX_GPU_UNDER_EVENT)
        r = driver.query(c->event);
    else if (may_wait)
        r = driver.synchronize();
    if (r == CUDA_SUCCESS)
        *state = KREX_GPU_DRAINED;
    return r;
}

static enum krex_gpu_state visit(struct krex_gpu_context *c, bool may_wait) {
    enum krex_gpu_state state = c->state;
    CUresult r = driver.set_current(c->handle);
    if (r == CUDA_SUCCESS)
        r = advance(c, &state, may_wait);
    driver.set_current(NULL);
    return is_dead(r) ? KREX_GPU_DRAINED : is_refusal(r) ? KREX_GPU_REFUSED : state;
}

/* The captures. */

static void *current(void) {
    CUresult (*get)(CUcontext *) = krex_cu_find_any("cuCtxGetCurrent");
    CUcontext context = NULL;
    return get && get(&context) == CUDA_SUCCESS ? context : NULL;
}

static bool is_capturing(const void *stream) {
    CUresult (*ask)(CUstream, CUstreamCaptureStatus *) = krex_cu_find_any("cuStreamIsCapturing");
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask && ask((CUstream)stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

struct krex_gpu krex_cu_gpu = {
    .prepare = be_relaxed,
    .visit = visit,
    .per_thread_stream = CU_STREAM_PER_THREAD,
    .current = current,
    .is_capturing = is_capturing,
};
