/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { MAPPED = 2, PITCH = 256, ATTACH_GLOBAL = 1, ATTACH_HOST = 2, SIGNAL_MEMORY = 2 };

/* An allocation, or what a capture that minds has to say against one. */
static hipError_t enter(struct drv_context **context) {
    hipError_t r = hip_enter(context);
    if (r)
        return r;
    drv_lock();
    enum drv_result minds = drv_capture_check_unsafe(*context);
    drv_unlock();
    return hip_result(minds);
}

hipError_t hipMalloc(void **ptr, size_t size) {
    struct drv_context *context;
    struct drv_memory *memory;
    hipError_t r = enter(&context);
    if (r || !ptr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *ptr = NULL;
    if (!size) /* nothing, and no error */
        return r;
    r = hip_result(drv_memory_allocate(context, size, &memory));
    if (!r)
        *ptr = (void *)(uintptr_t)memory->address;
    return r;
}

hipError_t hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height) {
    if (!pitch || !width || !height)
        return hip_error(HIP_INVALID_VALUE);
    size_t bytes = (width + PITCH - 1) / PITCH * PITCH;
    hipError_t r = hipMalloc(ptr, bytes * height);
    if (!r)
        *pitch = bytes;
    return r;
}

hipError_t hipMemAllocPitch(hipDeviceptr_t *dptr, size_t *pitch, size_t widthInBytes, size_t height,
                            unsigned int elementSizeBytes) {
    (void)elementSizeBytes;
    return hipMallocPitch(dptr, pitch, widthInBytes, height);
}

hipError_t hipMalloc3D(hipPitchedPtr *pitchedDevPtr, hipExtent extent) {
    if (!pitchedDevPtr)
        return hip_error(HIP_INVALID_VALUE);
    hipPitchedPtr p = {NULL, 0, extent.width, extent.height};
    hipError_t r = hipMallocPitch(&p.ptr, &p.pitch, extent.width, extent.height * extent.depth);
    if (!r)
        *pitchedDevPtr = p;
    return r;
}

static hipError_t host(void **ptr, size_t bytes, enum drv_memory_kind kind, unsigned flags) {
    struct drv_context *context;
    struct drv_memory *memory;
    hipError_t r = enter(&context);
    if (r || !ptr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *ptr = NULL;
    if (!bytes)
        return r;
    r = hip_result(drv_memory_host(context, bytes, kind, flags, &memory));
    if (!r)
        *ptr = (void *)(uintptr_t)memory->address;
    return r;
}

/* Memory that signals are in is the host's. */
hipError_t hipExtMallocWithFlags(void **ptr, size_t sizeBytes, unsigned int flags) {
    return flags & SIGNAL_MEMORY ? host(ptr, sizeBytes, DRV_PINNED, MAPPED)
                                 : hipMalloc(ptr, sizeBytes);
}

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags) {
    return host(ptr, size, DRV_PINNED, flags | MAPPED);
}

hipError_t hipHostAlloc(void **ptr, size_t size, unsigned int flags) {
    return hipHostMalloc(ptr, size, flags);
}

hipError_t hipMallocHost(void **ptr, size_t size) { return hipHostMalloc(ptr, size, 0); }

hipError_t hipMemAllocHost(void **ptr, size_t size) { return hipHostMalloc(ptr, size, 0); }

hipError_t hipMallocManaged(void **dev_ptr, size_t size, unsigned int flags) {
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)
        return hip_error(HIP_INVALID_VALUE);
    return host(dev_ptr, size, DRV_MANAGED, flags);
}

static hipError_t release(void *ptr, bool is_host) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r || !ptr) /* to free nothing is fine */
        return r;
    return hip_result(drv_memory_free_address((uintptr_t)ptr, is_host));
}

hipError_t hipFree(void *ptr) { return release(ptr, false); }

hipError_t hipHostFree(void *ptr) { return release(ptr, true); }

hipError_t hipFreeHost(void *ptr) { return release(ptr, true); }

hipError_t hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags) {
    struct drv_context *context;
    hipError_t r = enter(&context);
    return r ? r : hip_result(drv_memory_register(context, (uintptr_t)hostPtr, sizeBytes, flags));
}

hipError_t hipHostUnregister(void *hostPtr) {
    struct drv_context *context;
    hipError_t r = enter(&context);
    return r ? r : hip_result(drv_memory_unregister((uintptr_t)hostPtr));
}

/* Of pinned or registered memory; its addresses are the same on both sides. */
static hipError_t find_host(const void *ptr, struct drv_memory *memory) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r)
        return r;
    bool found = drv_memory_find((uintptr_t)ptr, memory) && memory->kind != DRV_DEVICE_MEMORY;
    return hip_result(found ? DRV_OK : DRV_INVALID_VALUE);
}

hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags) {
    struct drv_memory memory;
    hipError_t r = find_host(hstPtr, &memory);
    if (r || !devPtr || flags)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *devPtr = hstPtr;
    return r;
}

hipError_t hipHostGetFlags(unsigned int *flagsPtr, void *hostPtr) {
    struct drv_memory memory;
    hipError_t r = find_host(hostPtr, &memory);
    if (r || !flagsPtr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *flagsPtr = memory.flags;
    return r;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *pbase, size_t *psize, hipDeviceptr_t dptr) {
    struct drv_context *context;
    struct drv_memory memory;
    hipError_t r = hip_enter(&context);
    if (r)
        return r;
    if (!drv_memory_find((uintptr_t)dptr, &memory))
        return hip_result(DRV_NOT_FOUND);
    if (pbase)
        *pbase = (hipDeviceptr_t)(uintptr_t)memory.address;
    if (psize)
        *psize = memory.bytes;
    return r;
}

hipError_t hipMemPtrGetInfo(void *ptr, size_t *size) {
    return size ? hipMemGetAddressRange(NULL, size, ptr) : hip_error(HIP_INVALID_VALUE);
}

hipError_t hipMemGetInfo(size_t *free, size_t *total) {
    struct drv_context *context;
    uint64_t left, all;
    hipError_t r = hip_enter(&context);
    if (!r)
        r = hip_result(drv_memory_info(context, &left, &all));
    if (!r && free)
        *free = left;
    if (!r && total)
        *total = all;
    return r;
}

/* Where managed memory lies is not modelled; only the order is kept. */
hipError_t hipMemPrefetchAsync(const void *dev_ptr, size_t count, int device, hipStream_t stream) {
    struct drv_stream *s;
    (void)device;
    hipError_t r = hip_stream(stream, &s);
    if (r || !drv_memory_at((uintptr_t)dev_ptr, count))
        return r ? r : hip_error(HIP_INVALID_VALUE);
    struct drv_work work = drv_nothing_work();
    return hip_result(drv_submit(s, &work, NULL, 0, NULL));
}

hipError_t hipMemAdvise(const void *dev_ptr, size_t count, hipMemoryAdvise advice, int device) {
    struct drv_context *context;
    (void)advice;
    (void)device;
    hipError_t r = hip_enter(&context);
    if (!r && !drv_memory_at((uintptr_t)dev_ptr, count))
        r = hip_error(HIP_INVALID_VALUE);
    return r;
}
