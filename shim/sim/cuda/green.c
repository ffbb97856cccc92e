/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts: the device is not really divided. One stands for the primary context of its device,
 * whose streams its streams are; so whoever waits for that one waits for these.
 */
#include <stdlib.h>
#include <string.h>

#include "face.h"
#include "structs.h"

enum { DEFAULT_STREAM = 1, GRANULE = 8, NON_BLOCKING = 1 };

struct krex_CUdevResourceDesc {
    CUdevResource resource;
};

struct krex_CUgreenCtx {
    struct drv_device *device;
    struct drv_context *context;
    CUdevResource resource;
    unsigned long long id;
};

static CUresult find(CUgreenCtx handle) {
    enum drv_result r = drv_ready();
    if (!r && !drv_handle_is(DRV_GREEN, handle))
        r = DRV_INVALID_CONTEXT;
    return cu_result(r);
}

static void describe(CUdevResource *resource, unsigned sms) {
    memset(resource, 0, sizeof *resource);
    resource->type = CU_SIM_SM;
    resource->sms = sms;
    resource->smallest = GRANULE;
    resource->alignment = GRANULE;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
    struct drv_device *d;
    CUresult r = cu_device(device, &d);
    if (r || !resource || type != CU_SIM_SM)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    describe(resource, d->is->multiprocessors);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type) {
    struct drv_context *context;
    CUresult r = cu_context(hCtx, &context);
    return r ? r : cuDeviceGetDevResource(cu_ordinal(context->device), resource, type);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                     const CUdevResource *input, CUdevResource *remainder,
                                     unsigned int flags, unsigned int minCount) {
    (void)flags;
    if (!nbGroups || !input || input->type != CU_SIM_SM || !minCount)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned each = (minCount + GRANULE - 1) / GRANULE * GRANULE;
    unsigned groups = input->sms / each;
    if (result && groups > *nbGroups)
        groups = *nbGroups;
    for (unsigned i = 0; result && i < groups; i++)
        describe(&result[i], each);
    if (remainder)
        describe(remainder, input->sms - groups * each);
    *nbGroups = groups;
    return CUDA_SUCCESS;
}

/* Never freed, as the interface has no call for that. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                   unsigned int nbResources) {
    if (!phDesc || !resources || !nbResources || resources->type != CU_SIM_SM)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevResourceDesc made = malloc(sizeof *made);
    if (!made)
        return cu_result(DRV_OUT_OF_MEMORY);
    made->resource = resources[0];
    *phDesc = made;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
    static unsigned long long last_id;
    struct drv_device *device;
    CUresult r = cu_device(dev, &device);
    if (r || !phCtx || !desc || flags != DEFAULT_STREAM)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    CUgreenCtx made = calloc(1, sizeof *made);
    if (!made || !drv_handle_add(DRV_GREEN, made)) {
        free(made);
        return cu_result(DRV_OUT_OF_MEMORY);
    }
    made->device = device;
    made->resource = desc->resource;
    made->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    r = cu_result(drv_primary_retain(device, &made->context));
    if (r) {
        drv_handle_remove(made);
        free(made);
        return r;
    }
    *phCtx = made;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
    CUresult r = find(hCtx);
    if (r)
        return r;
    drv_handle_remove(hCtx);
    r = cu_result(drv_primary_release(hCtx->device));
    free(hCtx);
    return r;
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
    CUresult r = find(hCtx);
    if (r || !pContext)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pContext = (CUcontext)hCtx->context;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                  CUdevResourceType type) {
    CUresult r = find(hCtx);
    if (r || !resource || type != CU_SIM_SM)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *resource = hCtx->resource;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId) {
    CUresult r = find(greenCtx);
    if (r || !greenCtxId)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *greenCtxId = greenCtx->id;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                int priority) {
    struct drv_stream *stream;
    CUresult r = find(greenCtx);
    if (r || !phStream || flags != NON_BLOCKING)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_stream_create(greenCtx->context, false, priority, &stream));
    if (!r)
        *phStream = (CUstream)stream;
    return r;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
    CUresult r = find(hCtx);
    return r ? r : cuCtxRecordEvent((CUcontext)hCtx->context, hEvent);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
    CUresult r = find(hCtx);
    return r ? r : cuCtxWaitEvent((CUcontext)hCtx->context, hEvent);
}
