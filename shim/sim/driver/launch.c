/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, and what else a stream can be given.
 */
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "driver.h"

enum { THREADS = 1024, RESIDENT = 2048, BLOCKS_RESIDENT = 32 };

static uint64_t product(const uint32_t size[3]) { return (uint64_t)size[0] * size[1] * size[2]; }

/* What the vendors' drivers refuse in the call, each with its own error. */
static enum drv_result check(const struct drv_device *device, const struct drv_function *f,
                             const struct drv_shape *shape) {
    const uint32_t *grid = shape->grid, *block = shape->block;
    uint64_t threads = product(block);
    if (!product(grid) || !threads || grid[0] > INT32_MAX || grid[1] > drv_vendor.largest_y_z ||
        grid[2] > drv_vendor.largest_y_z)
        return DRV_INVALID_VALUE;
    if (block[0] > THREADS || block[1] > THREADS || block[2] > drv_vendor.largest_block_z ||
        threads > THREADS)
        return DRV_INVALID_VALUE;
    if (shape->shared > f->max_dynamic_shared)
        return DRV_INVALID_VALUE;
    if (threads > f->max_threads)
        return DRV_LAUNCH_RESOURCES;
    uint64_t resident = RESIDENT / threads < BLOCKS_RESIDENT ? RESIDENT / threads : BLOCKS_RESIDENT;
    if (shape->cooperative && product(grid) > resident * device->is->multiprocessors)
        return DRV_COOPERATIVE_TOO_LARGE;
    return DRV_OK;
}

/* Packed; NULL: no memory. There is always a byte, so that a kernel without parameters has some. */
static unsigned char *pack(const struct drv_function *f, void *const *parameters,
                           const void *packed, size_t packed_bytes) {
    unsigned char *to = calloc(1, f->parameter_bytes + 1);
    if (!to)
        return NULL;
    if (packed)
        memcpy(to, packed, packed_bytes < f->parameter_bytes ? packed_bytes : f->parameter_bytes);
    for (uint32_t i = 0; !packed && i < f->parameters; i++)
        memcpy(to + f->parameter[i].offset, parameters[i], f->parameter[i].size);
    return to;
}

bool drv_read_extra(void *const *extra, struct drv_packed *packed) {
    enum { BUFFER = 1, SIZE = 2 };
    *packed = (struct drv_packed){0};
    for (; extra && *extra != drv_vendor.extra_end; extra += 2)
        if (*extra == (void *)BUFFER)
            packed->bytes = extra[1];
        else if (*extra == (void *)SIZE)
            packed->size = *(const size_t *)extra[1];
        else
            return false;
    return true;
}

static enum drv_result compute_effect(struct drv_work *work) {
    return work->launch.function->compute(&work->launch);
}

static bool is_flag_set(struct drv_work *work) {
    uint64_t address = 0;
    memcpy(&address, work->launch.parameters, sizeof address);
    const uint32_t *flag = drv_memory_at(address, sizeof *flag);
    return !flag || krex_load_acquire(flag);
}

static void specialise(struct drv_work *work) {
    const struct drv_function *f = work->launch.function;
    bool has_word = f->parameter_bytes >= sizeof(uint64_t);
    if (f->compute)
        work->effect = compute_effect;
    if (f->special == DRV_SPIN && has_word) {
        work->flags |= KREX_SIM_EXPLICIT;
        memcpy(&work->amount, work->owned, sizeof work->amount);
    }
    if (f->special == DRV_WAIT_FLAG && has_word) {
        work->flags |= KREX_SIM_HELD;
        work->turn = is_flag_set;
        work->watches = true;
    }
}

enum drv_result drv_launch_work(const struct drv_device *device,
                                const struct drv_function *function, const struct drv_shape *shape,
                                void *const *parameters, const void *packed, size_t packed_bytes,
                                struct drv_work *work) {
    enum drv_result r = check(device, function, shape);
    if (r)
        return r;
    if (function->parameters && !parameters && !packed)
        return DRV_INVALID_VALUE;
    *work = (struct drv_work){.kind = KREX_SIM_RUN, .kernel = function->kernel};
    work->owned_bytes = function->parameter_bytes + 1;
    work->owned = pack(function, parameters, packed, packed_bytes);
    if (!work->owned)
        return DRV_OUT_OF_MEMORY;
    work->blocks = product(shape->grid);
    work->threads = (uint32_t)product(shape->block);
    work->launch = (struct drv_launch){.function = function, .parameters = work->owned};
    memcpy(work->launch.grid, shape->grid, sizeof shape->grid);
    memcpy(work->launch.block, shape->block, sizeof shape->block);
    work->launch.shared = shape->shared;
    work->launch.cooperative = shape->cooperative;
    specialise(work);
    return DRV_OK;
}

struct drv_work drv_nothing_work(void) { return (struct drv_work){.kind = KREX_SIM_EVENT}; }

static bool call(struct drv_work *work) {
    const struct drv_callback *c = &work->callback;
    if (c->call)
        c->call(c);
    else
        c->function(c->argument);
    return true;
}

struct drv_work drv_callback_work(const struct drv_callback *callback) {
    return (struct drv_work){.kind = KREX_SIM_HOST, .turn = call, .callback = *callback};
}

static bool compare(const struct drv_wait *w, uint64_t seen) {
    bool wide = w->bytes == sizeof(uint64_t);
    seen &= w->mask;
    uint64_t value = wide ? w->value : (uint32_t)w->value;
    switch (w->compare) {
    case DRV_GREATER_EQUAL: /* cyclic, as the headers say */
        return wide ? (int64_t)(seen - value) >= 0
                    : (int32_t)((uint32_t)seen - (uint32_t)value) >= 0;
    case DRV_EQUAL:
        return seen == value;
    case DRV_AND:
        return (seen & value) != 0;
    default:
        return (wide ? ~(seen | value) : (uint32_t)~(seen | value)) != 0;
    }
}

static bool is_word_so(struct drv_work *work) {
    const struct drv_wait *w = &work->wait;
    const void *at = drv_memory_at(w->address, w->bytes);
    if (!at)
        return true; /* freed meanwhile: nobody will write it */
    uint64_t seen = w->bytes == sizeof(uint64_t) ? krex_load_acquire((const uint64_t *)at)
                                                 : krex_load_acquire((const uint32_t *)at);
    return compare(w, seen);
}

struct drv_work drv_wait_work(const struct drv_wait *wait) {
    return (struct drv_work){
        .kind = KREX_SIM_HOST, .turn = is_word_so, .watches = true, .wait = *wait};
}

static enum drv_result write_effect(struct drv_work *work) {
    const struct drv_wait *w = &work->wait;
    void *at = drv_memory_at(w->address, w->bytes);
    if (!at)
        return DRV_ILLEGAL_ADDRESS;
    if (w->bytes == sizeof(uint64_t))
        krex_store_release((uint64_t *)at, w->value);
    else
        krex_store_release((uint32_t *)at, (uint32_t)w->value);
    return DRV_OK;
}

struct drv_work drv_write_work(const struct drv_wait *wait) {
    struct drv_work work = drv_nothing_work();
    work.effect = write_effect;
    work.wait = *wait;
    return work;
}
