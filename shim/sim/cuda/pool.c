/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"
#include "structs.h"

enum attribute {
    REUSE_FIRST = 1,
    REUSE_LAST = 3,
    THRESHOLD = 4,
    RESERVED,
    RESERVED_HIGH,
    USED,
    USED_HIGH,
    ALLOCATION_TYPE,
    HANDLE_TYPES,
    LOCATION_ID,
    LOCATION_TYPE,
    MOST,
};

enum { PINNED_TYPE = 1, READ_WRITE = 3 };

static CUresult find(CUmemoryPool handle, struct drv_pool **pool) {
    enum drv_result r = drv_ready();
    *pool = (struct drv_pool *)handle;
    if (!r && !drv_handle_is(DRV_POOL, handle))
        r = DRV_INVALID_VALUE;
    return cu_result(r);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
    struct drv_stream *stream;
    struct drv_pool *from;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = find(pool, &from);
    if (r || !dptr)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    uint64_t address;
    r = cu_result(drv_allocate_async(from, stream, bytesize, &address));
    if (!r)
        *dptr = address;
    return r;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    struct drv_stream *stream;
    struct drv_pool *pool;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = cu_result(drv_pool_current(stream->context->device, &pool));
    return r ? r : cuMemAllocFromPoolAsync(dptr, bytesize, (CUmemoryPool)pool, hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    return r ? r : cu_result(drv_free_async(stream, dptr));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    struct drv_device *device;
    struct drv_pool *pool;
    CUresult r = cu_device(dev, &device);
    if (r || !pool_out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_pool_default(device, &pool));
    if (!r)
        *pool_out = (CUmemoryPool)pool;
    return r;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    struct drv_device *device;
    struct drv_pool *found;
    CUresult r = cu_device(dev, &device);
    if (r || !pool)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_pool_current(device, &found));
    if (!r)
        *pool = (CUmemoryPool)found;
    return r;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    struct drv_device *device;
    struct drv_pool *wanted;
    CUresult r = cu_device(dev, &device);
    if (!r)
        r = find(pool, &wanted);
    if (r || wanted->device != device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    device->current_pool = wanted;
    return CUDA_SUCCESS;
}

static bool is_of_a_device(const CUmemLocation *location, CUmemAllocationType type) {
    return location && location->type == CU_SIM_LOCATION_DEVICE && type == PINNED_TYPE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                CUmemAllocationType type) {
    return is_of_a_device(location, type) ? cuDeviceGetDefaultMemPool(pool_out, location->id)
                                          : cu_result(DRV_NOT_SUPPORTED);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    return is_of_a_device(location, type) ? cuDeviceGetMemPool(pool, location->id)
                                          : cu_result(DRV_NOT_SUPPORTED);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    return is_of_a_device(location, type) ? cuDeviceSetMemPool(location->id, pool)
                                          : cu_result(DRV_NOT_SUPPORTED);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    struct drv_device *device;
    struct drv_pool *made;
    if (!pool || !poolProps)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_of_a_device(&poolProps->location, poolProps->type) || poolProps->handle_types)
        return cu_result(DRV_NOT_SUPPORTED);
    CUresult r = cu_device(poolProps->location.id, &device);
    if (!r)
        r = cu_result(drv_pool_create(device, &made));
    if (!r)
        *pool = (CUmemoryPool)made;
    return r;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    struct drv_pool *p;
    CUresult r = find(pool, &p);
    if (r || p == p->device->pool)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_pool_destroy(p);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    struct drv_pool *p;
    (void)minBytesToKeep;
    CUresult r = find(pool, &p);
    if (!r)
        drv_memory_settle();
    return r;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    struct drv_pool *p;
    CUresult r = find(pool, &p);
    if (r || !value || attr < REUSE_FIRST)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    cuuint64_t *wide = value;
    int *narrow = value;
    if (attr <= REUSE_LAST || attr == ALLOCATION_TYPE || attr == LOCATION_TYPE)
        *narrow = 1;
    else if (attr == THRESHOLD)
        *wide = p->threshold;
    else if (attr == RESERVED || attr == USED)
        *wide = p->used;
    else if (attr == RESERVED_HIGH || attr == USED_HIGH)
        *wide = p->used_high;
    else if (attr == HANDLE_TYPES)
        *narrow = 0;
    else if (attr == LOCATION_ID)
        *narrow = cu_ordinal(p->device);
    else if (attr == MOST)
        *wide = p->device->is->memory;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    struct drv_pool *p;
    CUresult r = find(pool, &p);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (attr == THRESHOLD)
        p->threshold = *(cuuint64_t *)value;
    else if (attr == USED_HIGH || attr == RESERVED_HIGH)
        p->used_high = p->used;
    else if (attr < REUSE_FIRST || attr > REUSE_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                            CUmemLocation *location) {
    struct drv_pool *p;
    CUresult r = find(memPool, &p);
    if (r || !flags || !location)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == cu_ordinal(p->device) ? READ_WRITE : 0;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    struct drv_pool *p;
    CUresult r = find(pool, &p);
    for (size_t i = 0; !r && map && i < count; i++)
        if (map[i].flags && map[i].location.id != cu_ordinal(p->device))
            r = cu_result(DRV_PEER_UNSUPPORTED);
    return r;
}
