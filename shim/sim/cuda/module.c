/* SPDX-License-Identifier: Apache-2.0
 *
 * cuModule*: code in a context.
 */
#include <stdint.h>
#include <string.h>

#include "face.h"
#include "load.h"
#include "sim/driver/module.h"

enum { MODE_EAGER = 1, MODE_LAZY = 2 };

enum jit_option { WALL_TIME = 2, INFO_LOG = 3, INFO_SIZE = 4, ERROR_LOG = 5, ERROR_SIZE = 6 };

/* Nothing is compiled, so it took no time and there is nothing to say. */
void cu_answer_jit_options(unsigned int count, const CUjit_option *options, void **values) {
    for (unsigned int i = 0; options && values && i < count; i++) {
        bool log = options[i] == INFO_LOG || options[i] == ERROR_LOG;
        bool size = options[i] == INFO_SIZE || options[i] == ERROR_SIZE;
        if (log && values[i])
            *(char *)values[i] = 0;
        if (size || options[i] == WALL_TIME)
            values[i] = NULL;
    }
}

static CUresult load(CUmodule *module, enum drv_result read, struct drv_code *code) {
    struct drv_context *context = drv_current();
    struct drv_module *made;
    enum drv_result r = read ? read : drv_module_load(context, code, NULL, &made);
    if (!r)
        *module = (CUmodule)made;
    return cu_result(r);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r)
        return r;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_code *code;
    enum drv_result read = drv_code_read(image, SIZE_MAX, &code);
    cu_answer_jit_options(numOptions, options, optionValues);
    return load(module, read, code);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r)
        return r;
    if (!module || !fname)
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_code *code;
    enum drv_result read = drv_code_read_file(fname, &code);
    return load(module, read, code);
}

static CUresult enter_module(CUmodule handle, struct drv_module **module) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    *module = (struct drv_module *)handle;
    if (!r && !drv_handle_is(DRV_MODULE, handle))
        r = cu_result(DRV_INVALID_HANDLE);
    return r;
}

/* A library's goes with the library. */
CUresult cuModuleUnload(CUmodule hmod) {
    struct drv_module *module;
    CUresult r = enter_module(hmod, &module);
    if (!r && module->library)
        r = cu_result(DRV_INVALID_HANDLE);
    if (!r)
        drv_module_unload(module);
    return r;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    struct drv_module *module;
    struct drv_function *found;
    CUresult r = enter_module(hmod, &module);
    if (r)
        return r;
    if (!hfunc || !name)
        return CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_module_find_function(module, name, &found));
    if (!r)
        *hfunc = (CUfunction)found;
    return r;
}

CUresult cu_give_variable(struct drv_module *module, const char *name, CUdeviceptr *dptr,
                          size_t *bytes) {
    uint64_t address, size;
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = cu_result(drv_module_find_variable(module, name, &address, &size));
    if (!r && dptr)
        *dptr = address;
    if (!r && bytes)
        *bytes = size;
    return r;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    struct drv_module *module;
    CUresult r = enter_module(hmod, &module);
    return r ? r : cu_give_variable(module, name, dptr, bytes);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
    struct drv_module *module;
    CUresult r = enter_module(mod, &module);
    if (r)
        return r;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = module->function_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                    CUmodule mod) {
    struct drv_module *module;
    CUresult r = enter_module(mod, &module);
    if (r)
        return r;
    if (!functions || !numFunctions)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < numFunctions && i < module->function_count; i++)
        functions[i] = (CUfunction)drv_module_function(module, i);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    CUresult r = cu_result(drv_ready());
    if (r)
        return r;
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = drv_modules_load_lazily() ? MODE_LAZY : MODE_EAGER;
    return CUDA_SUCCESS;
}
