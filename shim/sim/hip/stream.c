/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { NON_BLOCKING = 1 };

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority) {
    struct drv_context *context;
    struct drv_stream *made;
    hipError_t r = hip_enter(&context);
    if (r || !stream || flags > NON_BLOCKING)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_stream_create(context, !(flags & NON_BLOCKING), priority, &made));
    if (!r)
        *stream = (hipStream_t)made;
    return r;
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
    return hipStreamCreateWithPriority(stream, flags, 0);
}

hipError_t hipStreamCreate(hipStream_t *stream) {
    return hipStreamCreateWithPriority(stream, 0, 0);
}

/* Which units a stream may use is not modelled. */
hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t cuMaskSize,
                                        const uint32_t *cuMask) {
    return cuMaskSize && cuMask ? hipStreamCreate(stream) : hip_error(HIP_INVALID_VALUE);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
    hipError_t r = hip_ready();
    if (!r && !drv_handle_is(DRV_STREAM, stream))
        r = hip_result(DRV_INVALID_HANDLE);
    return r ? r : hip_result(drv_stream_destroy((struct drv_stream *)stream));
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    return r ? r : hip_result(drv_stream_synchronize(s));
}

hipError_t hipStreamQuery(hipStream_t stream) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    return r ? r : hip_result(drv_stream_query(s));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
    struct drv_stream *s;
    struct drv_event *e;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = hip_event(event, &e);
    if (r || flags > 1)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    return hip_result(drv_stream_wait(s, e));
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (r || !device)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *device = hip_ordinal(s->context->device);
    return r;
}

int hipGetStreamDeviceId(hipStream_t stream) {
    struct drv_stream *s;
    return hip_stream(stream, &s) ? -1 : hip_ordinal(s->context->device);
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (r || !flags)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *flags = s->blocking ? 0 : NON_BLOCKING;
    return r;
}

hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *streamId) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (r || !streamId)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *streamId = s->id;
    return r;
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (r || !priority)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *priority = s->priority;
    return r;
}

static hipError_t call_in(hipStream_t stream, const struct drv_callback *callback) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    struct drv_work work = drv_callback_work(callback);
    return r ? r : hip_result(drv_submit(s, &work, NULL, 0, NULL));
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *userData) {
    struct drv_callback callback = {.function = fn, .argument = userData};
    return fn ? call_in(stream, &callback) : hip_error(HIP_INVALID_VALUE);
}

static void call_back(const struct drv_callback *callback) {
    hipStreamCallback_t function = (hipStreamCallback_t)(void (*)(void))callback->function;
    function((hipStream_t)callback->handle, hipSuccess, callback->argument);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *userData,
                                unsigned int flags) {
    struct drv_callback c = {.argument = userData, .call = call_back, .handle = stream};
    c.function = (void (*)(void *))(void (*)(void))callback;
    return callback && !flags ? call_in(stream, &c) : hip_error(HIP_INVALID_VALUE);
}

/* All managed memory is everybody's. */
hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *dev_ptr, size_t length,
                                   unsigned int flags) {
    struct drv_stream *s;
    (void)dev_ptr;
    (void)length;
    (void)flags;
    return hip_stream(stream, &s);
}
