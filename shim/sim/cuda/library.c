/* SPDX-License-Identifier: Apache-2.0
 *
 * cuLibrary*, cuKernel*: code of no context.
 */
#include <stdint.h>

#include "load.h"

static CUresult load(CUlibrary *library, enum drv_result read, struct drv_code *code) {
    struct drv_library *made;
    enum drv_result r = read ? read : drv_library_load(code, &made);
    if (!r)
        *library = (CUlibrary)made;
    return cu_result(r);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                           void **jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions) {
    (void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
    enum drv_result ready = drv_ready();
    if (ready)
        return cu_result(ready);
    if (!library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_code *read;
    enum drv_result r = drv_code_read(code, SIZE_MAX, &read);
    cu_answer_jit_options(numJitOptions, jitOptions, jitOptionsValues);
    return load(library, r, read);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions) {
    (void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
    enum drv_result ready = drv_ready();
    if (ready)
        return cu_result(ready);
    if (!library || !fileName)
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_code *read;
    enum drv_result r = drv_code_read_file(fileName, &read);
    cu_answer_jit_options(numJitOptions, jitOptions, jitOptionsValues);
    return load(library, r, read);
}

static CUresult enter_library(CUlibrary handle, struct drv_library **library) {
    enum drv_result r = drv_ready();
    *library = (struct drv_library *)handle;
    if (!r && !drv_handle_is(DRV_LIBRARY, handle))
        r = DRV_INVALID_HANDLE;
    return cu_result(r);
}

static CUresult enter_kernel(CUkernel handle, struct drv_kernel **kernel) {
    enum drv_result r = drv_ready();
    *kernel = (struct drv_kernel *)handle;
    if (!r && !drv_handle_is(DRV_KERNEL, handle))
        r = DRV_INVALID_HANDLE;
    return cu_result(r);
}

CUresult cuLibraryUnload(CUlibrary library) {
    struct drv_library *l;
    CUresult r = enter_library(library, &l);
    if (!r)
        drv_library_unload(l);
    return r;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
    struct drv_library *l;
    struct drv_kernel *found;
    CUresult r = enter_library(library, &l);
    if (r)
        return r;
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_library_find_kernel(l, name, &found));
    if (!r)
        *pKernel = (CUkernel)found;
    return r;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) {
    struct drv_library *l;
    CUresult r = enter_library(lib, &l);
    if (r)
        return r;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = drv_library_kernels(l);
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    struct drv_library *l;
    CUresult r = enter_library(lib, &l);
    if (r)
        return r;
    if (!kernels || !numKernels)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < numKernels && i < drv_library_kernels(l); i++)
        kernels[i] = (CUkernel)drv_library_kernel(l, i);
    return CUDA_SUCCESS;
}

/* In the current context. */
static CUresult module_of(CUlibrary handle, struct drv_module **module) {
    struct drv_context *context;
    struct drv_library *l;
    CUresult r = cu_enter(&context);
    if (!r)
        r = enter_library(handle, &l);
    return r ? r : cu_result(drv_library_module(l, context, module));
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    struct drv_module *module;
    CUresult r = pMod ? module_of(library, &module) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *pMod = (CUmodule)module;
    return r;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    struct drv_module *module;
    CUresult r = module_of(library, &module);
    return r ? r : cu_give_variable(module, name, dptr, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                             const char *name) {
    return cuLibraryGetGlobal(dptr, bytes, library, name);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    struct drv_context *context;
    struct drv_kernel *k;
    struct drv_function *function;
    CUresult r = cu_enter(&context);
    if (!r)
        r = enter_kernel(kernel, &k);
    if (r)
        return r;
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_kernel_function(k, context, &function));
    if (!r)
        *pFunc = (CUfunction)function;
    return r;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) {
    struct drv_kernel *k;
    CUresult r = pLib ? enter_kernel(kernel, &k) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *pLib = (CUlibrary)k->library;
    return r;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc) {
    struct drv_kernel *k;
    CUresult r = name ? enter_kernel(hfunc, &k) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *name = k->is.name;
    return r;
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    struct drv_device *device;
    struct drv_kernel *k;
    CUresult r = cu_device(dev, &device);
    if (!r)
        r = enter_kernel(kernel, &k);
    return r ? r : cu_get_attribute(&k->is, attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    struct drv_device *device;
    struct drv_kernel *k;
    CUresult r = cu_device(dev, &device);
    if (!r)
        r = enter_kernel(kernel, &k);
    if (!r)
        r = cu_set_attribute(&k->is, attrib, val);
    if (!r)
        drv_kernel_changed(k);
    return r;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
    struct drv_device *device;
    struct drv_kernel *k;
    (void)config;
    CUresult r = cu_device(dev, &device);
    return r ? r : enter_kernel(kernel, &k);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                              size_t *paramSize) {
    struct drv_kernel *k;
    CUresult r = enter_kernel(kernel, &k);
    return r ? r : cu_give_parameter(&k->is, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetParamCount(CUkernel kernel, size_t *paramCount) {
    struct drv_kernel *k;
    CUresult r = paramCount ? enter_kernel(kernel, &k) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *paramCount = k->is.parameters;
    return r;
}
