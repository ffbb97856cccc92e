/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { FLAGS = 0xff };

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !pctx)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_context *context;
    r = cu_result(drv_primary_retain(d, &context));
    if (!r)
        *pctx = (CUcontext)context;
    return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    return r ? r : cu_result(drv_primary_release(d));
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    return r ? r : cu_result(drv_primary_reset(d));
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !flags || !active)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    *active = d->primary && d->primary->live;
    *flags = d->primary_flags;
    drv_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || flags > FLAGS)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    d->primary_flags = flags;
    if (d->primary)
        d->primary->flags = flags;
    drv_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
