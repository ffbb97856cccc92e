/* SPDX-License-Identifier: Apache-2.0
 *
 * hipCtx*: other names for devices. A context is a device, and to make one makes nothing.
 */
#include "face.h"

enum { DEPTH = 64, API_VERSION = 4 };

/* What hipCtxPopCurrent goes back to. */
static _Thread_local struct {
    int ordinal[DEPTH];
    unsigned depth;
} pushed;

static hipError_t device_of(hipCtx_t ctx, int *ordinal) {
    hipError_t r = hip_ready();
    const struct drv_device *device = (const struct drv_device *)(const void *)ctx;
    for (unsigned i = 0; !r && i < drv_devices(); i++)
        if (drv_device(i) == device) {
            *ordinal = (int)i;
            return r;
        }
    return r ? r : hip_result(DRV_INVALID_CONTEXT);
}

static hipCtx_t current(void) {
    return (hipCtx_t)(void *)drv_device((unsigned)hip_current_ordinal());
}

hipError_t hipCtxPushCurrent(hipCtx_t ctx) {
    int ordinal, before = hip_current_ordinal();
    hipError_t r = device_of(ctx, &ordinal);
    if (r || pushed.depth == DEPTH)
        return r ? r : hip_result(DRV_OUT_OF_MEMORY);
    pushed.ordinal[pushed.depth++] = before;
    return hip_set_ordinal(ordinal);
}

hipError_t hipCtxPopCurrent(hipCtx_t *ctx) {
    hipError_t r = hip_ready();
    if (!r && !pushed.depth)
        r = hip_result(DRV_INVALID_CONTEXT);
    if (r)
        return r;
    if (ctx)
        *ctx = current();
    return hip_set_ordinal(pushed.ordinal[--pushed.depth]);
}

hipError_t hipCtxCreate(hipCtx_t *ctx, unsigned int flags, hipDevice_t device) {
    struct drv_device *d;
    (void)flags;
    hipError_t r = hip_device(device, &d);
    if (r || !ctx)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *ctx = (hipCtx_t)(void *)d;
    return hipCtxPushCurrent(*ctx);
}

hipError_t hipCtxDestroy(hipCtx_t ctx) {
    int ordinal;
    hipError_t r = device_of(ctx, &ordinal);
    if (!r && ctx == current() && pushed.depth)
        r = hipCtxPopCurrent(NULL);
    return r;
}

hipError_t hipCtxSetCurrent(hipCtx_t ctx) {
    int ordinal = 0;
    hipError_t r = ctx ? device_of(ctx, &ordinal) : hip_ready();
    return r || !ctx ? r : hip_set_ordinal(ordinal);
}

hipError_t hipCtxGetCurrent(hipCtx_t *ctx) {
    hipError_t r = ctx ? hip_ready() : hip_error(HIP_INVALID_VALUE);
    if (!r)
        *ctx = current();
    return r;
}

hipError_t hipCtxGetDevice(hipDevice_t *device) { return hipGetDevice(device); }

hipError_t hipCtxSynchronize(void) { return hipDeviceSynchronize(); }

hipError_t hipCtxGetFlags(unsigned int *flags) { return hipGetDeviceFlags(flags); }

hipError_t hipCtxGetApiVersion(hipCtx_t ctx, unsigned int *apiVersion) {
    int ordinal;
    hipError_t r = ctx ? device_of(ctx, &ordinal) : hip_ready();
    if (r || !apiVersion)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *apiVersion = API_VERSION;
    return r;
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *pctx, hipDevice_t dev) {
    struct drv_device *d;
    hipError_t r = hip_device(dev, &d);
    if (r || !pctx)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pctx = (hipCtx_t)(void *)d;
    return r;
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t dev) {
    struct drv_device *d;
    return hip_device(dev, &d);
}

hipError_t hipDevicePrimaryCtxReset(hipDevice_t dev) {
    struct drv_device *d;
    return hip_device(dev, &d);
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t dev, unsigned int *flags, int *active) {
    struct drv_device *d;
    hipError_t r = hip_device(dev, &d);
    if (r || !flags || !active)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    *active = d->primary && d->primary->live;
    *flags = d->primary_flags;
    drv_unlock();
    return r;
}
