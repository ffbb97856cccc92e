/* SPDX-License-Identifier: Apache-2.0
 *
 * hipFunc*: what is known of a kernel, and what may be set for it.
 */
#include "load.h"
#include "structs.h"

enum attribute {
    MAX_THREADS,
    SHARED_BYTES,
    CONST_BYTES,
    LOCAL_BYTES,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE,
    MAX_DYNAMIC_SHARED,
    SHARED_CARVEOUT,
    ATTRIBUTES,
};

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attrib, hipFunction_t hfunc) {
    struct drv_function *f;
    hipError_t r = hip_kernel(hfunc, &f);
    if (r || !value || attrib >= ATTRIBUTES)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    const int values[ATTRIBUTES] = {
        [MAX_THREADS] = (int)f->max_threads,
        [SHARED_BYTES] = (int)f->shared_bytes,
        [CONST_BYTES] = (int)f->const_bytes,
        [LOCAL_BYTES] = (int)f->local_bytes,
        [REGISTERS] = (int)f->registers,
        [PTX_VERSION] = (int)f->ptx_version,
        [BINARY_VERSION] = (int)f->binary_version,
        [MAX_DYNAMIC_SHARED] = (int)f->max_dynamic_shared,
        [SHARED_CARVEOUT] = f->carveout,
    };
    *value = values[attrib];
    return r;
}

hipError_t hipFuncGetAttributes(hipFuncAttributes *attr, const void *func) {
    struct drv_function *f;
    hipError_t r = hip_kernel(func, &f);
    if (r || !attr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *attr = (hipFuncAttributes){
        .binary_version = (int)f->binary_version,
        .ptx_version = (int)f->ptx_version,
        .const_bytes = f->const_bytes,
        .local_bytes = f->local_bytes,
        .shared_bytes = f->shared_bytes,
        .max_dynamic_shared = (int)f->max_dynamic_shared,
        .max_threads = (int)f->max_threads,
        .registers = (int)f->registers,
        .carveout = f->carveout,
    };
    return r;
}

hipError_t hipFuncSetAttribute(const void *func, hipFuncAttribute attr, int value) {
    struct drv_function *f;
    hipError_t r = hip_kernel(func, &f);
    if (r)
        return r;
    if (attr == MAX_DYNAMIC_SHARED && value >= 0 &&
        (uint64_t)value + f->shared_bytes <= drv_vendor.multiprocessor.shared)
        f->max_dynamic_shared = (uint32_t)value;
    else if (attr == SHARED_CARVEOUT && value >= -1 && value <= 100)
        f->carveout = value;
    else
        return hip_error(HIP_INVALID_VALUE);
    if (drv_handle_is(DRV_KERNEL, f))
        drv_kernel_changed((struct drv_kernel *)f);
    return r;
}

hipError_t hipFuncSetCacheConfig(const void *func, hipFuncCache_t config) {
    struct drv_function *f;
    (void)config;
    return hip_kernel(func, &f);
}

hipError_t hipFuncSetSharedMemConfig(const void *func, hipSharedMemConfig config) {
    struct drv_function *f;
    (void)config;
    return hip_kernel(func, &f);
}

const char *hipKernelNameRef(const hipFunction_t f) {
    struct drv_function *found;
    return hip_kernel(f, &found) ? NULL : found->name;
}

const char *hipKernelNameRefByPtr(const void *hostFunction, hipStream_t stream) {
    struct drv_function *found;
    (void)stream;
    return hip_kernel(hostFunction, &found) ? NULL : found->name;
}
