/* SPDX-License-Identifier: Apache-2.0
 *
 * hipLibrary*, hipKernel*: code of no device.
 */
#include <stdint.h>

#include "load.h"

static hipError_t load(hipLibrary_t *library, enum drv_result read, struct drv_code *code) {
    struct drv_library *made;
    enum drv_result r = read ? read : drv_library_load(code, &made);
    if (!r)
        *library = (hipLibrary_t)made;
    return hip_result(r);
}

hipError_t hipLibraryLoadData(hipLibrary_t *library, const void *code, hipJitOption *jitOptions,
                              void **jitOptionsValues, unsigned int numJitOptions,
                              hipLibraryOption *libraryOptions, void **libraryOptionValues,
                              unsigned int numLibraryOptions) {
    (void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
    (void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
    struct drv_code *read;
    hipError_t r = hip_ready();
    if (r || !library || !code)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    enum drv_result found = drv_code_read(code, SIZE_MAX, &read);
    return load(library, found, read);
}

hipError_t hipLibraryLoadFromFile(hipLibrary_t *library, const char *fileName,
                                  hipJitOption *jitOptions, void **jitOptionsValues,
                                  unsigned int numJitOptions, hipLibraryOption *libraryOptions,
                                  void **libraryOptionValues, unsigned int numLibraryOptions) {
    (void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
    (void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
    struct drv_code *read;
    hipError_t r = hip_ready();
    if (r || !library || !fileName)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    enum drv_result found = drv_code_read_file(fileName, &read);
    return load(library, found, read);
}

static hipError_t enter(hipLibrary_t handle, struct drv_library **library) {
    hipError_t r = hip_ready();
    *library = (struct drv_library *)handle;
    return r ? r : hip_result(drv_handle_is(DRV_LIBRARY, handle) ? DRV_OK : DRV_INVALID_HANDLE);
}

static hipError_t enter_kernel(hipKernel_t handle, struct drv_kernel **kernel) {
    hipError_t r = hip_ready();
    *kernel = (struct drv_kernel *)handle;
    return r ? r : hip_result(drv_handle_is(DRV_KERNEL, handle) ? DRV_OK : DRV_INVALID_HANDLE);
}

hipError_t hipLibraryUnload(hipLibrary_t library) {
    struct drv_library *l;
    hipError_t r = enter(library, &l);
    if (!r)
        drv_library_unload(l);
    return r;
}

hipError_t hipLibraryGetKernel(hipKernel_t *pKernel, hipLibrary_t library, const char *name) {
    struct drv_library *l;
    struct drv_kernel *found;
    hipError_t r = enter(library, &l);
    if (r || !pKernel || !name)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_library_find_kernel(l, name, &found));
    if (!r)
        *pKernel = (hipKernel_t)found;
    return r;
}

hipError_t hipLibraryGetKernelCount(unsigned int *count, hipLibrary_t library) {
    struct drv_library *l;
    hipError_t r = enter(library, &l);
    if (r || !count)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *count = drv_library_kernels(l);
    return r;
}

hipError_t hipLibraryEnumerateKernels(hipKernel_t *kernels, unsigned int numKernels,
                                      hipLibrary_t library) {
    struct drv_library *l;
    hipError_t r = enter(library, &l);
    if (r || !kernels || !numKernels)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    for (uint32_t i = 0; i < numKernels && i < drv_library_kernels(l); i++)
        kernels[i] = (hipKernel_t)drv_library_kernel(l, i);
    return r;
}

hipError_t hipLibraryGetGlobal(void **dptr, size_t *bytes, hipLibrary_t library, const char *name) {
    struct drv_context *context;
    struct drv_library *l;
    struct drv_module *module;
    hipError_t r = hip_enter(&context);
    if (!r)
        r = enter(library, &l);
    if (!r)
        r = hip_result(drv_library_module(l, context, &module));
    return r ? r : hip_give_variable(module, name, dptr, bytes);
}

/* On the current device. */
hipError_t hipKernelGetFunction(hipFunction_t *pFunc, hipKernel_t kernel) {
    struct drv_context *context;
    struct drv_kernel *k;
    struct drv_function *function;
    hipError_t r = hip_enter(&context);
    if (!r)
        r = enter_kernel(kernel, &k);
    if (r || !pFunc)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_kernel_function(k, context, &function));
    if (!r)
        *pFunc = (hipFunction_t)function;
    return r;
}

hipError_t hipKernelGetLibrary(hipLibrary_t *library, hipKernel_t kernel) {
    struct drv_kernel *k;
    hipError_t r = enter_kernel(kernel, &k);
    if (r || !library)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *library = (hipLibrary_t)k->library;
    return r;
}

hipError_t hipKernelGetName(const char **name, hipKernel_t kernel) {
    struct drv_kernel *k;
    hipError_t r = enter_kernel(kernel, &k);
    if (r || !name)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *name = k->is.name;
    return r;
}

hipError_t hipKernelGetParamInfo(hipKernel_t kernel, size_t paramIndex, size_t *paramOffset,
                                 size_t *paramSize) {
    struct drv_kernel *k;
    hipError_t r = enter_kernel(kernel, &k);
    if (r || !paramOffset || paramIndex >= k->is.parameters)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *paramOffset = k->is.parameter[paramIndex].offset;
    if (paramSize)
        *paramSize = k->is.parameter[paramIndex].size;
    return r;
}
