/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries: code of no context, whose modules are made where somebody asks for one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

struct drv_library {
    struct drv_code *code;
    struct drv_kernel *kernels;
    struct drv_module *modules;
};

/* One module of a library is made at a time: two threads that ask get the same one. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

uint32_t drv_library_kernels(const struct drv_library *library) {
    return library->code->image.kernel_count;
}

struct drv_kernel *drv_library_kernel(struct drv_library *library, uint32_t index) {
    return &library->kernels[index];
}

static bool add_handles(struct drv_library *library) {
    bool added = drv_handle_add(DRV_LIBRARY, library);
    for (uint32_t i = 0; i < library->code->image.kernel_count && added; i++)
        added = drv_handle_add(DRV_KERNEL, &library->kernels[i]);
    return added;
}

static void destroy(struct drv_library *library) {
    drv_handle_remove(library);
    for (uint32_t i = 0; library->kernels && i < library->code->image.kernel_count; i++)
        drv_handle_remove(&library->kernels[i]);
    drv_lock();
    drv_code_release(library->code);
    drv_unlock();
    free(library->kernels);
    free(library);
}

/* Its attributes are told for the first device: the others are alike. */
enum drv_result drv_library_load(struct drv_code *code, struct drv_library **made) {
    struct drv_library *library = calloc(1, sizeof *library);
    if (!library) {
        drv_code_release(code);
        return DRV_OUT_OF_MEMORY;
    }
    library->code = code;
    library->kernels = calloc((size_t)code->image.kernel_count + 1, sizeof *library->kernels);
    for (uint32_t i = 0; library->kernels && i < code->image.kernel_count; i++) {
        drv_code_describe(code, drv_device(0), i, &library->kernels[i].is);
        library->kernels[i].library = library;
    }
    if (!library->kernels || !add_handles(library)) {
        destroy(library);
        return DRV_OUT_OF_MEMORY;
    }
    *made = library;
    return DRV_OK;
}

static struct drv_module *find_module(const struct drv_library *library,
                                      const struct drv_context *context) {
    struct drv_module *m = library->modules;
    while (m && m->context != context)
        m = m->sibling;
    return m;
}

void drv_library_unload(struct drv_library *library) {
    pthread_mutex_lock(&making);
    while (library->modules)
        drv_module_unload(library->modules);
    pthread_mutex_unlock(&making);
    destroy(library);
}

enum drv_result drv_library_find_kernel(struct drv_library *library, const char *name,
                                        struct drv_kernel **kernel) {
    for (uint32_t i = 0; i < library->code->image.kernel_count; i++)
        if (!strcmp(library->kernels[i].is.name, name)) {
            *kernel = &library->kernels[i];
            return DRV_OK;
        }
    return DRV_NOT_FOUND;
}

enum drv_result drv_library_module(struct drv_library *library, struct drv_context *context,
                                   struct drv_module **module) {
    enum drv_result r = DRV_OK;
    pthread_mutex_lock(&making);
    drv_lock();
    *module = find_module(library, context);
    library->code->references += !*module;
    drv_unlock();
    if (!*module)
        r = drv_module_load(context, library->code, library, module);
    pthread_mutex_unlock(&making);
    return r;
}

enum drv_result drv_kernel_function(struct drv_kernel *kernel, struct drv_context *context,
                                    struct drv_function **function) {
    struct drv_module *module;
    enum drv_result r = drv_library_module(kernel->library, context, &module);
    if (!r)
        *function = drv_module_function(module, (uint32_t)(kernel - kernel->library->kernels));
    return r;
}

static void apply(const struct drv_kernel *kernel, struct drv_module *module) {
    uint32_t index = (uint32_t)(kernel - kernel->library->kernels);
    struct drv_function *function = drv_module_function(module, index);
    function->max_dynamic_shared = kernel->is.max_dynamic_shared;
    function->carveout = kernel->is.carveout;
}

void drv_kernel_changed(const struct drv_kernel *kernel) {
    drv_lock();
    for (struct drv_module *m = kernel->library->modules; m; m = m->sibling)
        apply(kernel, m);
    drv_unlock();
}

void drv_library_enlist(struct drv_module *module) {
    struct drv_library *library = module->library;
    for (uint32_t i = 0; i < library->code->image.kernel_count; i++)
        apply(&library->kernels[i], module);
    module->sibling = library->modules;
    library->modules = module;
}

void drv_library_forget(struct drv_module *module) {
    struct drv_module **at = &module->library->modules;
    while (*at != module)
        at = &(*at)->sibling;
    *at = module->sibling;
    module->library = NULL;
}
