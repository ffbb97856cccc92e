/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "face.h"

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    struct drv_device *d;
    CUresult r = cu_device(ordinal, &d);
    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return r;
}

CUresult cuDeviceGetCount(int *count) {
    enum drv_result r = drv_ready();
    if (r || !count)
        return r ? cu_result(r) : CUDA_ERROR_INVALID_VALUE;
    *count = (int)drv_devices();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !name || len <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "%s", d->is->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !uuid)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, d->is->uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) { return cuDeviceGetUuid_v2(uuid, dev); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !bytes)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *bytes = d->is->memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !major || !minor)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *major = (int)d->is->major;
    *minor = (int)d->is->minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !pciBusId || len <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", drv_bus(d));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
    enum drv_result r = drv_ready();
    if (r || !dev || !pciBusId)
        return r ? cu_result(r) : CUDA_ERROR_INVALID_VALUE;
    const struct drv_device *found = drv_device_on(pciBusId);
    if (found)
        *dev = cu_ordinal(found);
    return cu_result(found ? DRV_OK : DRV_INVALID_DEVICE);
}

/* Devices reach each other through the host only. */
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (!r)
        r = cu_device(peerDev, &d);
    if (r || !canAccessPeer)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
    (void)attrib;
    if (srcDevice == dstDevice)
        return cu_result(DRV_INVALID_DEVICE);
    return cuDeviceCanAccessPeer(value, srcDevice, dstDevice);
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev) {
    (void)type;
    return cuDeviceCanAccessPeer(pi, dev, dev);
}

/* Not of the vendor's interface: the n of the key sim:<n>, which is what the gate goes by. */
__attribute__((visibility("default"))) int krex_sim_device_number(CUdevice dev) {
    struct drv_device *d;
    return cu_device(dev, &d) ? -1 : (int)d->is->number;
}
