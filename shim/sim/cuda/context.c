/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { FLAGS = 0xff, API_2000 = 2000, API_3020 = 3020, PREFER_NONE = 0, FOUR_BYTE_BANKS = 1 };

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned version) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !pctx || flags > FLAGS)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_context *context;
    r = cu_result(drv_context_create(d, flags, &context));
    if (r)
        return r;
    context->api_version = version;
    *pctx = (CUcontext)context;
    return cu_result(drv_push_current(context));
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, API_2000);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, API_3020);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
    (void)paramsArray;
    return numParams ? cu_result(DRV_NOT_SUPPORTED) : create(pctx, flags, dev, API_3020);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
    return ctxCreateParams ? cu_result(DRV_NOT_SUPPORTED) : create(pctx, flags, dev, API_3020);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
    struct drv_context *context;
    CUresult r = cu_context(ctx, &context);
    if (r)
        return r;
    if (context->primary)
        return cu_result(DRV_INVALID_CONTEXT);
    if (drv_current() == context)
        drv_pop_current();
    return cu_result(drv_context_destroy(context));
}

CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    struct drv_context *context;
    CUresult r = cu_context(ctx, &context);
    return r ? r : cu_result(drv_push_current(context));
}

CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    enum drv_result r = drv_ready();
    struct drv_context *context = r ? NULL : drv_pop_current();
    if (!r && !context)
        r = DRV_INVALID_CONTEXT;
    if (!r && pctx)
        *pctx = (CUcontext)context;
    return cu_result(r);
}

CUresult cuCtxPopCurrent(CUcontext *pctx) { return cuCtxPopCurrent_v2(pctx); }

CUresult cuCtxSetCurrent(CUcontext ctx) {
    struct drv_context *context = NULL;
    CUresult r = ctx ? cu_context(ctx, &context) : cu_result(drv_ready());
    if (!r)
        drv_set_current(context);
    return r;
}

CUresult cuCtxGetCurrent(CUcontext *pctx) {
    enum drv_result r = drv_ready();
    if (r || !pctx)
        return r ? cu_result(r) : CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)drv_current();
    return CUDA_SUCCESS;
}

/* The one that is current; or the one that is given, where the call has a newer form that gives it. */
static CUresult given(CUcontext ctx, struct drv_context **context) {
    return ctx ? cu_context(ctx, context) : cu_enter(context);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    struct drv_context *context;
    CUresult r = given(ctx, &context);
    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *device = cu_ordinal(context->device);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) { return cuCtxGetDevice_v2(device, NULL); }

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    struct drv_context *context;
    CUresult r = given(ctx, &context);
    return r ? r : cu_result(drv_context_synchronize(context));
}

CUresult cuCtxSynchronize(void) { return cuCtxSynchronize_v2(NULL); }

CUresult cuCtxGetFlags(unsigned int *flags) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || flags > FLAGS)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    struct drv_context *context;
    CUresult r = given(ctx, &context);
    if (r || !ctxId)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *ctxId = context->id;
    return CUDA_SUCCESS;
}

/* Libraries call it with garbage, to learn whether that is a context. */
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    struct drv_context *context;
    CUresult r = given(ctx, &context);
    if (r || !version)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version ? context->api_version : API_3020;
    return CUDA_SUCCESS;
}

static bool has_limit(CUlimit limit) {
    return limit < sizeof((struct drv_context *)NULL)->limit / sizeof(uint64_t);
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
    static const size_t usual[] = {1024, 1048576, 8388608, 2, 2048, 64};
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !pvalue || !has_limit(limit))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pvalue = context->limit[limit];
    if (!*pvalue && limit < sizeof usual / sizeof *usual)
        *pvalue = usual[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !has_limit(limit))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    context->limit[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (!r && leastPriority)
        *leastPriority = 0;
    if (!r && greatestPriority)
        *greatestPriority = -5;
    return r;
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
    struct drv_context *context;
    struct drv_event *event;
    CUresult r = given(hCtx, &context);
    if (!r)
        r = cu_event(hEvent, &event);
    return r ? r : cu_result(drv_context_record(context, event));
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
    struct drv_context *context;
    struct drv_event *event;
    CUresult r = given(hCtx, &context);
    if (!r)
        r = cu_event(hEvent, &event);
    return r ? r : cu_result(drv_context_wait(context, event));
}

/* Preferences: there is nothing that they could do to a model. */

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (!r && pconfig)
        *pconfig = PREFER_NONE;
    return r;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    struct drv_context *context;
    (void)config;
    return cu_enter(&context);
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (!r && pConfig)
        *pConfig = FOUR_BYTE_BANKS;
    return r;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    struct drv_context *context;
    (void)config;
    return cu_enter(&context);
}

CUresult cuCtxResetPersistingL2Cache(void) {
    struct drv_context *context;
    return cu_enter(&context);
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    struct drv_context *context;
    CUresult r = Flags ? CUDA_ERROR_INVALID_VALUE : cu_context(peerContext, &context);
    return r ? r : cu_result(DRV_PEER_UNSUPPORTED);
}
