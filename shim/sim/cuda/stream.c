/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { NON_BLOCKING = 1 };

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !phStream || flags > NON_BLOCKING)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_stream *stream;
    r = cu_result(drv_stream_create(context, !(flags & NON_BLOCKING), priority, &stream));
    if (!r)
        *phStream = (CUstream)stream;
    return r;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags) {
    return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
    enum drv_result r = drv_ready();
    if (!r && !drv_handle_is(DRV_STREAM, hStream))
        r = DRV_INVALID_HANDLE;
    return cu_result(r ? r : drv_stream_destroy((struct drv_stream *)hStream));
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamSynchronize(CUstream hStream) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    return r ? r : cu_result(drv_stream_synchronize(stream));
}

CUresult cuStreamQuery(CUstream hStream) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    return r ? r : cu_result(drv_stream_query(stream));
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    struct drv_stream *stream;
    struct drv_event *event;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = cu_event(hEvent, &event);
    if (r || Flags > 1)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return cu_result(drv_stream_wait(stream, event));
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !pctx)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)stream->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
    CUresult r = cuStreamGetCtx(hStream, pCtx);
    if (!r && pGreenCtx)
        *pGreenCtx = NULL;
    return r;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *device = cu_ordinal(stream->context->device);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *flags = stream->blocking ? 0 : NON_BLOCKING;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !streamId)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *streamId = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !priority)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !fn)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_callback callback = {.function = fn, .argument = userData};
    struct drv_work work = drv_callback_work(&callback);
    return cu_result(drv_submit(stream, &work, NULL, 0, NULL));
}

CUresult cuLaunchHostFunc_v2(CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode) {
    (void)syncMode;
    return cuLaunchHostFunc(hStream, fn, userData);
}

static void call_back(const struct drv_callback *callback) {
    CUstreamCallback function = (CUstreamCallback)(void (*)(void))callback->function;
    function((CUstream)callback->handle, CUDA_SUCCESS, callback->argument);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                             unsigned int flags) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !callback || flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_callback c = {.argument = userData, .call = call_back, .handle = hStream};
    c.function = (void (*)(void *))(void (*)(void))callback;
    struct drv_work work = drv_callback_work(&c);
    return cu_result(drv_submit(stream, &work, NULL, 0, NULL));
}

/* All managed memory is everybody's. */
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags) {
    struct drv_stream *stream;
    (void)dptr;
    (void)length;
    (void)flags;
    return cu_stream(hStream, &stream);
}

/* Attributes are hints to a model that has no use for them. */

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value) {
    struct drv_stream *stream;
    (void)attr;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    __builtin_memset(value, 0, 64);
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                              const CUstreamAttrValue *param) {
    struct drv_stream *stream;
    (void)attr;
    CUresult r = cu_stream(hStream, &stream);
    return r || param ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) {
    struct drv_stream *stream;
    CUresult r = cu_stream(dstStream, &stream);
    return r ? r : cu_stream(srcStream, &stream);
}
