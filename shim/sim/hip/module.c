/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "load.h"

/* Options of a compiler that there is none of: its logs are empty. */
enum { WALL_TIME = 2, INFO_LOG, INFO_SIZE, ERROR_LOG, ERROR_SIZE };

static void answer_options(unsigned int count, const hipJitOption *options, void **values) {
    for (unsigned int i = 0; options && values && i < count; i++) {
        bool log = options[i] == INFO_LOG || options[i] == ERROR_LOG;
        bool size = options[i] == INFO_SIZE || options[i] == ERROR_SIZE;
        if (log && values[i])
            *(char *)values[i] = 0;
        if (size || options[i] == WALL_TIME)
            values[i] = NULL;
    }
}

static hipError_t load(struct drv_context *context, hipModule_t *module, enum drv_result read,
                       struct drv_code *code) {
    struct drv_module *made;
    enum drv_result r = read ? read : drv_module_load(context, code, NULL, &made);
    if (!r)
        *module = (hipModule_t)made;
    return hip_result(r);
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned int numOptions,
                               hipJitOption *options, void **optionValues) {
    struct drv_context *context;
    struct drv_code *code;
    hipError_t r = hip_enter(&context);
    if (r || !module || !image)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    enum drv_result read = drv_code_read(image, SIZE_MAX, &code);
    answer_options(numOptions, options, optionValues);
    return load(context, module, read, code);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    return hipModuleLoadDataEx(module, image, 0, NULL, NULL);
}

hipError_t hipModuleLoadFatBinary(hipModule_t *module, const void *fatbin) {
    return hipModuleLoadData(module, fatbin);
}

hipError_t hipModuleLoad(hipModule_t *module, const char *fname) {
    struct drv_context *context;
    struct drv_code *code;
    hipError_t r = hip_enter(&context);
    if (r || !module || !fname)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    enum drv_result read = drv_code_read_file(fname, &code);
    return load(context, module, read, code);
}

static hipError_t enter(hipModule_t handle, struct drv_module **module) {
    hipError_t r = hip_ready();
    *module = (struct drv_module *)handle;
    return r ? r : hip_result(drv_handle_is(DRV_MODULE, handle) ? DRV_OK : DRV_INVALID_HANDLE);
}

hipError_t hipModuleUnload(hipModule_t module) {
    struct drv_module *m;
    hipError_t r = enter(module, &m);
    if (!r)
        drv_module_unload(m);
    return r;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *kname) {
    struct drv_module *m;
    struct drv_function *found;
    hipError_t r = enter(module, &m);
    if (r || !function || !kname)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_module_find_function(m, kname, &found));
    if (!r)
        *function = (hipFunction_t)found;
    return r;
}

hipError_t hipModuleGetFunctionCount(unsigned int *count, hipModule_t module) {
    struct drv_module *m;
    hipError_t r = enter(module, &m);
    if (r || !count)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *count = m->function_count;
    return r;
}

hipError_t hip_give_variable(struct drv_module *module, const char *name, void **address,
                             size_t *bytes) {
    uint64_t at, size;
    if (!name || (!address && !bytes))
        return hip_error(HIP_INVALID_VALUE);
    hipError_t r = hip_result(drv_module_find_variable(module, name, &at, &size));
    if (!r && address)
        *address = (void *)(uintptr_t)at;
    if (!r && bytes)
        *bytes = size;
    return r;
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *dptr, size_t *bytes, hipModule_t hmod,
                              const char *name) {
    struct drv_module *m;
    hipError_t r = enter(hmod, &m);
    return r ? r : hip_give_variable(m, name, dptr, bytes);
}
