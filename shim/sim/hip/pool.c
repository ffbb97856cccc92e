/* SPDX-License-Identifier: Apache-2.0 */
#include "structs.h"

enum attribute {
    REUSE_FIRST = 1,
    REUSE_LAST = 3,
    THRESHOLD,
    RESERVED,
    RESERVED_HIGH,
    USED,
    USED_HIGH
};

enum { PINNED_TYPE = 1, LOCATION_DEVICE = 1, READ_WRITE = 3 };

static hipError_t find(hipMemPool_t handle, struct drv_pool **pool) {
    hipError_t r = hip_ready();
    *pool = (struct drv_pool *)handle;
    return r ? r : hip_result(drv_handle_is(DRV_POOL, handle) ? DRV_OK : DRV_INVALID_VALUE);
}

static hipError_t allocate(void **ptr, size_t size, struct drv_pool *pool,
                           struct drv_stream *stream) {
    uint64_t address;
    if (!ptr)
        return hip_error(HIP_INVALID_VALUE);
    hipError_t r = hip_result(drv_allocate_async(pool, stream, size, &address));
    if (!r)
        *ptr = (void *)(uintptr_t)address;
    return r;
}

hipError_t hipMallocFromPoolAsync(void **dev_ptr, size_t size, hipMemPool_t mem_pool,
                                  hipStream_t stream) {
    struct drv_stream *s;
    struct drv_pool *pool;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = find(mem_pool, &pool);
    return r ? r : allocate(dev_ptr, size, pool, s);
}

hipError_t hipMallocAsync(void **dev_ptr, size_t size, hipStream_t stream) {
    struct drv_stream *s;
    struct drv_pool *pool;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = hip_result(drv_pool_current(s->context->device, &pool));
    return r ? r : allocate(dev_ptr, size, pool, s);
}

hipError_t hipFreeAsync(void *dev_ptr, hipStream_t stream) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    return r ? r : hip_result(drv_free_async(s, (uintptr_t)dev_ptr));
}

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *mem_pool, int device) {
    struct drv_device *d;
    struct drv_pool *pool;
    hipError_t r = hip_device(device, &d);
    if (r || !mem_pool)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_pool_default(d, &pool));
    if (!r)
        *mem_pool = (hipMemPool_t)pool;
    return r;
}

hipError_t hipDeviceGetMemPool(hipMemPool_t *mem_pool, int device) {
    struct drv_device *d;
    struct drv_pool *pool;
    hipError_t r = hip_device(device, &d);
    if (r || !mem_pool)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_pool_current(d, &pool));
    if (!r)
        *mem_pool = (hipMemPool_t)pool;
    return r;
}

hipError_t hipDeviceSetMemPool(int device, hipMemPool_t mem_pool) {
    struct drv_device *d;
    struct drv_pool *pool;
    hipError_t r = hip_device(device, &d);
    if (!r)
        r = find(mem_pool, &pool);
    if (r || pool->device != d)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    d->current_pool = pool;
    return r;
}

hipError_t hipMemPoolCreate(hipMemPool_t *mem_pool, const hipMemPoolProps *pool_props) {
    struct drv_device *d;
    struct drv_pool *made;
    if (!mem_pool || !pool_props)
        return hip_error(HIP_INVALID_VALUE);
    if (pool_props->type != PINNED_TYPE || pool_props->location.type != LOCATION_DEVICE ||
        pool_props->handle_types)
        return hip_error(HIP_NOT_SUPPORTED);
    hipError_t r = hip_device(pool_props->location.id, &d);
    if (!r)
        r = hip_result(drv_pool_create(d, &made));
    if (!r)
        *mem_pool = (hipMemPool_t)made;
    return r;
}

hipError_t hipMemPoolDestroy(hipMemPool_t mem_pool) {
    struct drv_pool *pool;
    hipError_t r = find(mem_pool, &pool);
    if (r || pool == pool->device->pool)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_pool_destroy(pool);
    return r;
}

hipError_t hipMemPoolTrimTo(hipMemPool_t mem_pool, size_t min_bytes_to_hold) {
    struct drv_pool *pool;
    (void)min_bytes_to_hold;
    hipError_t r = find(mem_pool, &pool);
    if (!r)
        drv_memory_settle();
    return r;
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void *value) {
    struct drv_pool *pool;
    hipError_t r = find(mem_pool, &pool);
    if (r || !value || attr < REUSE_FIRST || attr > USED_HIGH)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (attr <= REUSE_LAST)
        *(int *)value = 1;
    else if (attr == THRESHOLD)
        *(uint64_t *)value = pool->threshold;
    else
        *(uint64_t *)value = attr == RESERVED || attr == USED ? pool->used : pool->used_high;
    return r;
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void *value) {
    struct drv_pool *pool;
    hipError_t r = find(mem_pool, &pool);
    if (r || !value)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (attr == THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    else if (attr == USED_HIGH || attr == RESERVED_HIGH)
        pool->used_high = pool->used;
    else if (attr < REUSE_FIRST || attr > REUSE_LAST)
        return hip_error(HIP_INVALID_VALUE);
    return r;
}

hipError_t hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t mem_pool,
                               hipMemLocation *location) {
    struct drv_pool *pool;
    hipError_t r = find(mem_pool, &pool);
    if (r || !flags || !location)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *flags = location->id == hip_ordinal(pool->device) ? READ_WRITE : 0;
    return r;
}

hipError_t hipMemPoolSetAccess(hipMemPool_t mem_pool, const hipMemAccessDesc *desc_list,
                               size_t count) {
    struct drv_pool *pool;
    hipError_t r = find(mem_pool, &pool);
    for (size_t i = 0; !r && desc_list && i < count; i++)
        if (desc_list[i].flags && desc_list[i].location.id != hip_ordinal(pool->device))
            r = hip_result(DRV_PEER_UNSUPPORTED);
    return r;
}
