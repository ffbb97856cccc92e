/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { DEVICEMAP = 2, PITCH = 512, ATTACH_GLOBAL = 1, ATTACH_HOST = 2, ELEMENT = 16 };

/* An allocation, or what a capture that minds has to say against one. */
static CUresult enter(struct drv_context **context) {
    CUresult r = cu_enter(context);
    if (r)
        return r;
    drv_lock();
    r = cu_result(drv_capture_check_unsafe(*context));
    drv_unlock();
    return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    struct drv_context *context;
    CUresult r = enter(&context);
    if (r || !dptr)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_memory *memory;
    r = cu_result(drv_memory_allocate(context, bytesize, &memory));
    if (!r)
        *dptr = memory->address;
    return r;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
    if (!pPitch || !WidthInBytes || !Height || ElementSizeBytes > ELEMENT)
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (WidthInBytes + PITCH - 1) / PITCH * PITCH;
    CUresult r = cuMemAlloc_v2(dptr, pitch * Height);
    if (!r)
        *pPitch = pitch;
    return r;
}

static CUresult host(uint64_t *address, size_t bytes, enum drv_memory_kind kind, unsigned flags) {
    struct drv_context *context;
    CUresult r = enter(&context);
    if (r || !address)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_memory *memory;
    r = cu_result(drv_memory_host(context, bytes, kind, flags, &memory));
    if (!r)
        *address = memory->address;
    return r;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return host((uint64_t *)pp, bytesize, DRV_PINNED, DEVICEMAP);
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize) {
    return cuMemAllocHost_v2(pp, bytesize);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    return host((uint64_t *)pp, bytesize, DRV_PINNED, Flags | DEVICEMAP);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return host((uint64_t *)dptr, bytesize, DRV_MANAGED, flags);
}

static CUresult release(uint64_t address, bool is_host) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !address) /* to free nothing is fine */
        return r;
    return cu_result(drv_memory_free_address(address, is_host));
}

CUresult cuMemFree_v2(CUdeviceptr dptr) { return release(dptr, false); }

CUresult cuMemFreeHost(void *p) { return release((uintptr_t)p, true); }

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    struct drv_context *context;
    CUresult r = enter(&context);
    return r ? r : cu_result(drv_memory_register(context, (uintptr_t)p, bytesize, Flags));
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void *p) {
    struct drv_context *context;
    CUresult r = enter(&context);
    return r ? r : cu_result(drv_memory_unregister((uintptr_t)p));
}

/* Of pinned or registered memory; its addresses are the same on both sides. */
static CUresult find_host(const void *p, struct drv_memory *memory) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r)
        return r;
    bool found = drv_memory_find((uintptr_t)p, memory) && memory->kind != DRV_DEVICE_MEMORY;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    struct drv_memory memory;
    CUresult r = find_host(p, &memory);
    if (r || !pdptr || Flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pdptr = (uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    struct drv_memory memory;
    CUresult r = find_host(p, &memory);
    if (r || !pFlags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pFlags = memory.flags;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    struct drv_context *context;
    struct drv_memory memory;
    CUresult r = cu_enter(&context);
    if (r)
        return r;
    if (!drv_memory_find(dptr, &memory))
        return cu_result(DRV_NOT_FOUND);
    if (pbase)
        *pbase = memory.address;
    if (psize)
        *psize = memory.bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    struct drv_context *context;
    uint64_t left, all;
    CUresult r = cu_enter(&context);
    if (!r)
        r = cu_result(drv_memory_info(context, &left, &all));
    if (!r && free)
        *free = left;
    if (!r && total)
        *total = all;
    return r;
}

/* Where managed memory lies is not modelled; only the order is kept. */
CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
    struct drv_stream *stream;
    (void)location;
    CUresult r = cu_stream(hStream, &stream);
    if (r || flags || !drv_memory_at(devPtr, count))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_work work = drv_nothing_work();
    return cu_result(drv_submit(stream, &work, NULL, 0, NULL));
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
    return cuMemPrefetchAsync_v2(devPtr, count, (CUmemLocation){1, dstDevice}, 0, hStream);
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
    struct drv_context *context;
    (void)advice;
    (void)location;
    CUresult r = cu_enter(&context);
    return r || drv_memory_at(devPtr, count) ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(devPtr, count, advice, (CUmemLocation){1, device});
}
