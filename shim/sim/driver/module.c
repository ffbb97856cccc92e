/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules. One that is unloaded stays until nothing is under way in its context, and no graph has a node
 * of it: commands, and the worker, know its functions by pointer.
 */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "atomic.h"

/* Variables start at multiples of this; the first not where the block does, which could be freed. */
enum { ALIGN = 256 };

struct drv_module_function {
    struct drv_function is;
    uint32_t loaded; /* released by who loads it; pairs with the acquire of every launch */
};

/* Who loads code holds it, and waits for the device: as on a real driver, where the first launch of a
 * kernel holds the context's lock meanwhile. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct drv_context
    *loading_in; /* released under `loading`; who reads it only waits longer */

bool drv_modules_load_lazily(void) {
    const char *mode = drv_vendor.loading ? getenv(drv_vendor.loading) : "EAGER";
    return !mode || strcasecmp(mode, "EAGER") != 0;
}

struct drv_function *drv_module_function(struct drv_module *module, uint32_t index) {
    return &module->functions[index].is;
}

/* Memory. */

static uint64_t room(uint64_t size) {
    return size > UINT64_MAX - ALIGN ? UINT64_MAX : (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* Places the variables of one kind one behind another; how much memory that takes. */
static uint64_t place(struct drv_module *m, bool managed) {
    const struct drv_image *image = &m->code->image;
    uint64_t end = 0;
    for (uint32_t i = 0; i < image->variable_count; i++) {
        const struct drv_variable_info *v = &image->variables[i];
        if (v->managed != managed)
            continue;
        m->addresses[i] = end = end ? end : ALIGN;
        if (__builtin_add_overflow(end, room(v->size), &end))
            return UINT64_MAX;
    }
    return end;
}

static void initialise(struct drv_module *m, bool managed) {
    const struct drv_image *image = &m->code->image;
    for (uint32_t i = 0; i < image->variable_count; i++) {
        const struct drv_variable_info *v = &image->variables[i];
        if (v->managed != managed)
            continue;
        m->addresses[i] += m->block[managed]->address;
        unsigned char *at = drv_memory_at(m->addresses[i], v->size);
        if (!at)
            continue;
        memset(at, 0, v->size);
        if (v->initial)
            memcpy(at, v->initial, v->initial_size);
    }
}

static enum drv_result make_variables(struct drv_module *m, bool managed) {
    uint64_t bytes = place(m, managed);
    if (!bytes)
        return DRV_OK;
    enum drv_result r = managed
                            ? drv_memory_host(m->context, bytes, DRV_MANAGED, 0, &m->block[managed])
                            : drv_memory_allocate(m->context, bytes, &m->block[managed]);
    if (!r)
        initialise(m, managed);
    return r;
}

/* Its life. */

static void destroy(struct drv_module *m) {
    for (int i = 0; i < 2; i++)
        if (m->block[i])
            drv_memory_free(m->block[i]);
    drv_lock();
    drv_code_release(m->code);
    drv_unlock();
    free(m->functions);
    free(m->addresses);
    free(m);
}

/* Takes off the list those that nobody can want any more. Not locked. */
static void sweep(struct drv_context *context) {
    struct drv_module *gone = NULL;
    drv_lock();
    struct drv_module **at = (struct drv_module **)&context->modules;
    while (!context->oldest && *at) {
        struct drv_module *m = *at;
        if (!m->unloaded || m->references) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = gone;
        gone = m;
    }
    drv_unlock();
    while (gone) {
        struct drv_module *next = gone->next;
        destroy(gone);
        gone = next;
    }
}

static enum drv_result make_functions(struct drv_module *m) {
    uint32_t count = m->code->image.kernel_count;
    m->functions = calloc((size_t)count + 1, sizeof *m->functions);
    m->function_count = m->functions ? count : 0;
    m->addresses = calloc((size_t)m->code->image.variable_count + 1, sizeof *m->addresses);
    if (!m->functions || !m->addresses)
        return DRV_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        drv_code_describe(m->code, m->context->device, i, &m->functions[i].is);
        m->functions[i].is.module = m;
    }
    enum drv_result r = make_variables(m, false);
    return r ? r : make_variables(m, true);
}

static bool add_handles(struct drv_module *m) {
    bool added = drv_handle_add(DRV_MODULE, m);
    for (uint32_t i = 0; i < m->function_count && added; i++)
        added = drv_handle_add(DRV_FUNCTION, &m->functions[i].is);
    return added;
}

static void remove_handles(const struct drv_module *m) {
    drv_handle_remove(m);
    for (uint32_t i = 0; i < m->function_count; i++)
        drv_handle_remove(&m->functions[i].is);
}

static void enlist(struct drv_module *m) {
    drv_lock();
    if (m->library)
        drv_library_enlist(m);
    m->next = m->context->modules;
    m->context->modules = m;
    drv_unlock();
}

static enum drv_result load_all(struct drv_module *m) {
    enum drv_result r = DRV_OK;
    for (uint32_t i = 0; i < m->function_count && !r; i++)
        r = drv_function_load(&m->functions[i].is);
    return r;
}

enum drv_result drv_module_load(struct drv_context *context, struct drv_code *code,
                                struct drv_library *library, struct drv_module **made) {
    sweep(context);
    struct drv_module *m = calloc(1, sizeof *m);
    if (!m) {
        drv_lock();
        drv_code_release(code);
        drv_unlock();
        return DRV_OUT_OF_MEMORY;
    }
    m->context = context;
    m->code = code;
    m->library = library;
    enum drv_result r = make_functions(m);
    if (!r && !drv_modules_load_lazily())
        r = load_all(m);
    if (!r && !add_handles(m)) {
        remove_handles(m);
        r = DRV_OUT_OF_MEMORY;
    }
    if (r) {
        destroy(m);
        return r;
    }
    enlist(m);
    *made = m;
    return DRV_OK;
}

/* Locked. */
static void unload(struct drv_module *m) {
    remove_handles(m);
    if (m->library)
        drv_library_forget(m);
    m->unloaded = true;
}

void drv_module_unload(struct drv_module *module) {
    struct drv_context *context = module->context;
    drv_lock();
    unload(module);
    drv_unlock();
    sweep(context);
}

/* What they have in memory goes with the context's. */
void drv_module_context_gone(struct drv_context *context) {
    drv_lock();
    for (struct drv_module *m = context->modules; m; m = m->next) {
        if (!m->unloaded)
            unload(m);
        m->block[0] = m->block[1] = NULL;
    }
    drv_unlock();
    sweep(context);
}

/* What is in it. */

enum drv_result drv_module_find_function(struct drv_module *module, const char *name,
                                         struct drv_function **function) {
    for (uint32_t i = 0; i < module->function_count; i++)
        if (!strcmp(module->functions[i].is.name, name)) {
            *function = &module->functions[i].is;
            return DRV_OK;
        }
    return DRV_NOT_FOUND;
}

enum drv_result drv_module_find_variable(struct drv_module *module, const char *name,
                                         uint64_t *address, uint64_t *bytes) {
    const struct drv_image *image = &module->code->image;
    for (uint32_t i = 0; i < image->variable_count; i++)
        if (!strcmp(image->variables[i].name, name)) {
            *address = module->addresses[i];
            *bytes = image->variables[i].size;
            return DRV_OK;
        }
    return DRV_NOT_FOUND;
}

/* Loading to the device. */

static enum drv_result ask(struct krex_sim_packet *packet) {
    enum drv_result r = drv_packet(packet);
    return r ? r : drv_status(packet->status);
}

/* Under `loading`. */
static enum drv_result load(struct drv_function *f, const struct drv_module *m) {
    struct krex_sim_packet name = {.op = KREX_SIM_KERNEL};
    strncpy(name.text, f->name, sizeof name.text - 1);
    enum drv_result r = ask(&name);
    if (r)
        return r;
    f->kernel = (uint32_t)name.value;
    struct krex_sim_packet code = {.op = KREX_SIM_LOAD, .context = m->context->wire};
    code.device = m->context->device->wire;
    code.value = m->code->image.bytes / m->function_count;
    return ask(&code);
}

struct drv_context *drv_function_context(const struct drv_function *function) {
    return ((const struct drv_module *)function->module)->context;
}

bool drv_function_is_loaded(const struct drv_function *function) {
    const struct drv_module_function *f = (const struct drv_module_function *)function;
    return function->module && krex_load_acquire(&f->loaded);
}

enum drv_result drv_function_load(struct drv_function *function) {
    struct drv_module_function *f = (struct drv_module_function *)function;
    struct drv_module *m = function->module;
    enum drv_result r = DRV_OK;
    if (krex_load_acquire(&f->loaded))
        return r;
    pthread_mutex_lock(&loading);
    krex_store_release(&loading_in, m->context);
    if (!krex_load_acquire(&f->loaded) && !(r = load(function, m)))
        krex_store_release(&f->loaded, 1);
    krex_store_release(&loading_in, NULL);
    pthread_mutex_unlock(&loading);
    return r;
}

void drv_loading_wait(struct drv_context *context) {
    if (krex_load_acquire(&loading_in) != context || !context)
        return;
    pthread_mutex_lock(&loading);
    pthread_mutex_unlock(&loading);
}

void drv_function_hold(const struct drv_function *function) {
    ((struct drv_module *)function->module)->references++;
}

void drv_function_release(const struct drv_function *function) {
    ((struct drv_module *)function->module)->references--;
}

static enum drv_result in_context(const void *handle, struct drv_context *context,
                                  struct drv_function **function) {
    if (drv_handle_is(DRV_KERNEL, handle))
        return drv_kernel_function((struct drv_kernel *)handle, context, function);
    if (!drv_handle_is(DRV_FUNCTION, handle))
        return DRV_INVALID_HANDLE;
    *function = (struct drv_function *)handle;
    const struct drv_module *m = (*function)->module;
    return m->context == context ? DRV_OK : DRV_INVALID_HANDLE;
}

enum drv_result drv_function_of(struct drv_context *context, const void *handle,
                                const struct drv_function **function) {
    struct drv_function *found;
    enum drv_result r = in_context(handle, context, &found);
    if (!r)
        r = drv_function_load(found);
    if (!r)
        *function = found;
    return r;
}
