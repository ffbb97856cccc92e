/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFunc*. A library's kernel is taken where a function is expected.
 */
#include "load.h"

enum attribute {
    MAX_THREADS = 0,
    SHARED_BYTES = 1,
    CONST_BYTES = 2,
    LOCAL_BYTES = 3,
    REGISTERS = 4,
    PTX_VERSION = 5,
    BINARY_VERSION = 6,
    CACHE_MODE = 7,
    MAX_DYNAMIC_SHARED = 8,
    SHARED_CARVEOUT = 9,
    CLUSTER_SIZE_NEEDED = 10, /* from here on: of clusters, which nothing here has */
    CLUSTER_POLICY = 15,
};

enum { MOST_SHARED = 227 << 10 }; /* of a block, both kinds together */

CUresult cu_get_attribute(const struct drv_function *f, CUfunction_attribute attribute,
                          int *value) {
    const int values[CLUSTER_POLICY + 1] = {
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
    if (!value || attribute > CLUSTER_POLICY)
        return CUDA_ERROR_INVALID_VALUE;
    *value = values[attribute];
    return CUDA_SUCCESS;
}

CUresult cu_set_attribute(struct drv_function *f, CUfunction_attribute attribute, int value) {
    if (attribute == MAX_DYNAMIC_SHARED && value >= 0 &&
        (uint64_t)value + f->shared_bytes <= MOST_SHARED)
        f->max_dynamic_shared = (uint32_t)value;
    else if (attribute == SHARED_CARVEOUT && value >= -1 && value <= 100)
        f->carveout = value;
    else if (attribute < CLUSTER_SIZE_NEEDED || attribute > CLUSTER_POLICY)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cu_give_parameter(const struct drv_function *f, size_t index, size_t *offset,
                           size_t *size) {
    if (!offset || index >= f->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->parameter[index].offset;
    if (size)
        *size = f->parameter[index].size;
    return CUDA_SUCCESS;
}

/* is_kernel may be NULL. */
static CUresult enter(CUfunction handle, struct drv_function **function, bool *is_kernel) {
    enum drv_result r = drv_ready();
    bool kernel = !r && drv_handle_is(DRV_KERNEL, handle);
    *function = (struct drv_function *)handle;
    if (is_kernel)
        *is_kernel = kernel;
    if (!r && !kernel && !drv_handle_is(DRV_FUNCTION, handle))
        r = DRV_INVALID_HANDLE;
    return cu_result(r);
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    struct drv_function *f;
    CUresult r = enter(hfunc, &f, NULL);
    return r ? r : cu_get_attribute(f, attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    struct drv_function *f;
    bool kernel;
    CUresult r = enter(hfunc, &f, &kernel);
    if (!r)
        r = cu_set_attribute(f, attrib, value);
    if (!r && kernel)
        drv_kernel_changed((struct drv_kernel *)f);
    return r;
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    struct drv_function *f;
    (void)config;
    return enter(hfunc, &f, NULL);
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
    struct drv_function *f;
    (void)config;
    return enter(hfunc, &f, NULL);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
    struct drv_function *f;
    bool kernel;
    CUresult r = enter(hfunc, &f, &kernel);
    if (!r && kernel)
        r = cu_result(DRV_INVALID_HANDLE);
    if (!r && !hmod)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *hmod = (CUmodule)f->module;
    return r;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc) {
    struct drv_function *f;
    CUresult r = name ? enter(hfunc, &f, NULL) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *name = f->name;
    return r;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                            size_t *paramSize) {
    struct drv_function *f;
    CUresult r = enter(func, &f, NULL);
    return r ? r : cu_give_parameter(f, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetParamCount(CUfunction func, size_t *paramCount) {
    struct drv_function *f;
    CUresult r = paramCount ? enter(func, &f, NULL) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *paramCount = f->parameters;
    return r;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
    struct drv_function *f;
    bool kernel;
    CUresult r = enter(function, &f, &kernel);
    if (!r && !state)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *state = !kernel && drv_function_is_loaded(f);
    return r;
}

CUresult cuFuncLoad(CUfunction function) {
    struct drv_context *context;
    const struct drv_function *f;
    CUresult r = cu_enter(&context);
    return r ? r : cu_result(drv_function_of(context, function, &f));
}
