/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "face.h"

enum { LIMITS = 16, STACK = 0, PRINTF = 1, HEAP = 2, PCI_LEAST = 13 };

hipError_t hipGetDeviceCount(int *count) {
    hipError_t r = hip_ready();
    if (!count)
        return hip_error(HIP_INVALID_VALUE);
    *count = r ? 0 : (int)drv_devices();
    return r;
}

hipError_t hipGetDevice(int *deviceId) {
    hipError_t r = hip_ready();
    if (r || !deviceId)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *deviceId = hip_current_ordinal();
    return hipSuccess;
}

hipError_t hipSetDevice(int deviceId) { return hip_set_ordinal(deviceId); }

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
    struct drv_device *d;
    hipError_t r = hip_device(ordinal, &d);
    if (r || !device)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *device = ordinal;
    return r;
}

hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device) {
    struct drv_device *d;
    hipError_t r = hip_device(device, &d);
    if (r || !name || len <= 0)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    snprintf(name, (size_t)len, HIP_SIM_NAME, d->is->name);
    return r;
}

/* The letters of what the environment has behind "GPU-". */
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
    char name[32];
    struct drv_device *d;
    hipError_t r = hip_device(device, &d);
    if (r || !uuid)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_vendor.name_uuid(d->is->uuid, name, sizeof name);
    memcpy(uuid, name + strlen("GPU-"), sizeof *uuid);
    return r;
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
    struct drv_device *d;
    hipError_t r = hip_device(device, &d);
    if (r || !bytes)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *bytes = d->is->memory;
    return r;
}

hipError_t hipDeviceGetPCIBusId(char *pciBusId, int len, int device) {
    struct drv_device *d;
    hipError_t r = hip_device(device, &d);
    if (r || !pciBusId || len < PCI_LEAST)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", drv_bus(d));
    return r;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *pciBusId) {
    hipError_t r = hip_ready();
    if (r || !device || !pciBusId)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    const struct drv_device *found = drv_device_on(pciBusId);
    if (found)
        *device = hip_ordinal(found);
    return found ? r : hip_result(DRV_INVALID_DEVICE);
}

hipError_t hipDeviceSynchronize(void) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    return r ? r : hip_result(drv_context_synchronize(context));
}

hipError_t hipDeviceReset(void) {
    struct drv_device *device;
    hipError_t r = hip_device(hip_current_ordinal(), &device);
    return r ? r : hip_result(drv_primary_reset(device));
}

hipError_t hipGetDeviceFlags(unsigned int *flags) {
    struct drv_device *device;
    hipError_t r = hip_device(hip_current_ordinal(), &device);
    if (r || !flags)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *flags = device->primary_flags;
    return r;
}

hipError_t hipSetDeviceFlags(unsigned int flags) {
    struct drv_device *device;
    hipError_t r = hip_device(hip_current_ordinal(), &device);
    if (!r)
        device->primary_flags = flags;
    return r;
}

hipError_t hipDeviceGetLimit(size_t *pValue, hipLimit_t limit) {
    static const size_t usual[] = {[STACK] = 1024, [PRINTF] = 1048576, [HEAP] = 8388608};
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r || !pValue || limit >= LIMITS)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pValue = context->limit[limit];
    if (!*pValue && limit <= HEAP)
        *pValue = usual[limit];
    return r;
}

hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r || limit >= LIMITS)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    context->limit[limit] = value;
    return r;
}

hipError_t hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    hipError_t r = hip_ready();
    if (!r && leastPriority)
        *leastPriority = 1;
    if (!r && greatestPriority)
        *greatestPriority = -1;
    return r;
}

/* Devices reach each other through the host only. */
hipError_t hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId) {
    struct drv_device *d;
    hipError_t r = hip_device(deviceId, &d);
    if (!r)
        r = hip_device(peerDeviceId, &d);
    if (r || !canAccessPeer)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *canAccessPeer = 0;
    return r;
}

hipError_t hipDeviceGetP2PAttribute(int *value, hipDeviceP2PAttr attr, int srcDevice,
                                    int dstDevice) {
    (void)attr;
    return hipDeviceCanAccessPeer(value, srcDevice, dstDevice);
}

hipError_t hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags) {
    struct drv_device *d;
    hipError_t r = flags ? hip_error(HIP_INVALID_VALUE) : hip_device(peerDeviceId, &d);
    return r ? r : hip_result(DRV_PEER_UNSUPPORTED);
}

/* Preferences: there is nothing that they could do to a model. */

hipError_t hipDeviceGetCacheConfig(hipFuncCache_t *cacheConfig) {
    hipError_t r = cacheConfig ? hip_ready() : hip_error(HIP_INVALID_VALUE);
    if (!r)
        *cacheConfig = 0;
    return r;
}

hipError_t hipDeviceSetCacheConfig(hipFuncCache_t cacheConfig) {
    (void)cacheConfig;
    return hip_ready();
}

hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig *pConfig) {
    hipError_t r = pConfig ? hip_ready() : hip_error(HIP_INVALID_VALUE);
    if (!r)
        *pConfig = 1; /* banks of four bytes */
    return r;
}

hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config) {
    (void)config;
    return hip_ready();
}

/* Not of the vendor's interface: the n of the key sim:<n>, which is what the gate goes by. */
__attribute__((visibility("default"))) int krex_sim_device_number(int device) {
    struct drv_device *d;
    return hip_device(device, &d) ? -1 : (int)d->is->number;
}
