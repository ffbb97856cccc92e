/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that devices may use. The device process keeps the accounts of what is the devices' own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "arena.h"
#include "ranges.h"

#define SMALL_ALIGN UINT64_C(512)
#define LARGE_ALIGN (UINT64_C(2) << 20)
#define LARGE (UINT64_C(1) << 20)
#define MOST (UINT64_C(1) << 42)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: the arena, the ranges, left */
static struct drv_memory *left; /* what streams have freed, and nobody has given back yet */
static uint64_t last_id;

enum drv_result drv_memory_init(void) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < drv_devices(); i++)
        bytes += 2 * drv_device(i)->is->memory; /* twice: holes */
    return drv_arena_map(bytes < MOST ? bytes : MOST) ? DRV_OK : DRV_SYSTEM;
}

static enum drv_result account(struct drv_context *context, uint32_t op, uint64_t bytes) {
    struct krex_sim_packet packet = {
        .op = op, .device = context->device->wire, .context = context->wire, .value = bytes};
    return drv_packet(&packet);
}

static uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

static struct drv_memory *make(struct drv_context *context, enum drv_memory_kind kind,
                               uint64_t bytes, uint64_t align) {
    struct drv_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->context = context;
    m->kind = kind;
    m->bytes = bytes;
    m->reserved = round_up(bytes, align);
    return m;
}

static bool add(struct drv_memory *m) {
    pthread_mutex_lock(&lock);
    m->id = ++last_id;
    bool added = m->address && drv_range_add(m);
    pthread_mutex_unlock(&lock);
    return added;
}

static void take(struct drv_memory *m) {
    pthread_mutex_lock(&lock);
    m->address = drv_arena_take(m->reserved, m->reserved < LARGE ? SMALL_ALIGN : LARGE_ALIGN);
    pthread_mutex_unlock(&lock);
}

enum drv_result drv_memory_allocate(struct drv_context *context, uint64_t bytes,
                                    struct drv_memory **made) {
    *made = NULL;
    drv_memory_settle();
    if (!bytes || bytes > MOST)
        return bytes ? DRV_OUT_OF_MEMORY : DRV_INVALID_VALUE;
    struct drv_memory *m = make(context, DRV_DEVICE_MEMORY, bytes, SMALL_ALIGN);
    enum drv_result r = m ? account(context, KREX_SIM_ALLOCATE, m->reserved) : DRV_OUT_OF_MEMORY;
    if (r) {
        free(m);
        return r;
    }
    take(m);
    if (add(m)) {
        *made = m;
        return DRV_OK;
    }
    account(context, KREX_SIM_FREE, m->reserved);
    free(m);
    return DRV_OUT_OF_MEMORY;
}

enum drv_result drv_memory_host(struct drv_context *context, uint64_t bytes,
                                enum drv_memory_kind kind, unsigned flags,
                                struct drv_memory **made) {
    struct drv_memory *m = bytes && bytes <= MOST ? make(context, kind, bytes, 4096) : NULL;
    *made = NULL;
    if (!m)
        return bytes ? DRV_OUT_OF_MEMORY : DRV_INVALID_VALUE;
    void *at = mmap(NULL, m->reserved, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    m->address = at == MAP_FAILED ? 0 : (uintptr_t)at;
    m->flags = flags;
    if (add(m)) {
        *made = m;
        return DRV_OK;
    }
    if (m->address)
        munmap(at, m->reserved);
    free(m);
    return DRV_OUT_OF_MEMORY;
}

enum drv_result drv_memory_register(struct drv_context *context, uint64_t address, uint64_t bytes,
                                    unsigned flags) {
    if (!address || !bytes)
        return DRV_INVALID_VALUE;
    struct drv_memory *m = make(context, DRV_REGISTERED, bytes, 1);
    if (!m)
        return DRV_OUT_OF_MEMORY;
    m->address = address;
    m->flags = flags;
    if (add(m))
        return DRV_OK;
    free(m);
    return DRV_ALREADY_REGISTERED;
}

static enum drv_result forget(struct drv_memory *m) {
    enum drv_result r = DRV_OK;
    pthread_mutex_lock(&lock);
    drv_range_remove(m);
    if (m->kind == DRV_DEVICE_MEMORY)
        drv_arena_give(m->address, m->reserved);
    if (m->pool)
        m->pool->used -= m->reserved;
    pthread_mutex_unlock(&lock);
    if (m->kind == DRV_DEVICE_MEMORY && m->context->live)
        r = account(m->context, KREX_SIM_FREE, m->reserved);
    else if (m->kind == DRV_PINNED || m->kind == DRV_MANAGED)
        munmap((void *)(uintptr_t)m->address, m->reserved);
    free(m);
    return r;
}

enum drv_result drv_memory_free(struct drv_memory *memory) { return forget(memory); }

static struct drv_memory *find_exact(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct drv_memory *m = drv_range_find(address);
    pthread_mutex_unlock(&lock);
    return m && m->address == address && !m->leaving ? m : NULL;
}

enum drv_result drv_memory_unregister(uint64_t address) {
    struct drv_memory *m = find_exact(address);
    if (!m || m->kind != DRV_REGISTERED)
        return DRV_NOT_REGISTERED;
    drv_context_idle(m->context);
    return forget(m);
}

enum drv_result drv_memory_free_address(uint64_t address, bool host) {
    struct drv_memory *m = find_exact(address);
    if (!m || m->kind == DRV_REGISTERED || host != (m->kind == DRV_PINNED))
        return DRV_INVALID_VALUE;
    drv_lock();
    enum drv_result r = drv_capture_check_unsafe(m->context);
    drv_unlock();
    if (r)
        return r;
    r = drv_context_idle(m->context);
    enum drv_result freed = forget(m);
    return r ? r : freed;
}

enum drv_result drv_memory_info(struct drv_context *context, uint64_t *free, uint64_t *all) {
    drv_memory_settle();
    struct krex_sim_packet packet = {.op = KREX_SIM_MEMORY, .device = context->device->wire};
    enum drv_result r = drv_packet(&packet);
    if (r)
        return r;
    *free = packet.value;
    *all = packet.value2;
    return DRV_OK;
}

void drv_memory_context_gone(struct drv_context *context) {
    drv_memory_settle();
    for (;;) {
        pthread_mutex_lock(&lock);
        struct drv_memory *m = drv_range_of(context);
        pthread_mutex_unlock(&lock);
        if (!m)
            return;
        forget(m);
    }
}

bool drv_memory_find(uint64_t address, struct drv_memory *found) {
    pthread_mutex_lock(&lock);
    const struct drv_memory *m = drv_range_find(address);
    if (m)
        *found = *m;
    pthread_mutex_unlock(&lock);
    return m != NULL;
}

void *drv_memory_at(uint64_t address, uint64_t bytes) {
    struct drv_memory m;
    if (!drv_memory_find(address, &m) || bytes > m.reserved - (address - m.address))
        return NULL;
    return drv_arena_has(address) ? drv_arena_at(address) : (void *)(uintptr_t)address;
}

bool drv_memory_is_device(uint64_t address) { return drv_arena_has(address); }

enum drv_result drv_allocate_async(struct drv_pool *pool, struct drv_stream *stream, uint64_t bytes,
                                   uint64_t *address) {
    if (stream->capture)
        return DRV_NOT_SUPPORTED; /* nodes that allocate are not modelled */
    struct drv_memory *m;
    enum drv_result r = drv_memory_allocate(stream->context, bytes, &m);
    if (r)
        return r;
    *address = m->address;
    pthread_mutex_lock(&lock);
    m->pool = pool;
    pool->used += m->reserved;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    pthread_mutex_unlock(&lock);
    return DRV_OK;
}

/* On the worker, which must not wait for packets: whoever calls next gives it back. */
static enum drv_result leave(struct drv_work *work) {
    pthread_mutex_lock(&lock);
    work->memory->next = left;
    left = work->memory;
    pthread_mutex_unlock(&lock);
    return DRV_OK;
}

enum drv_result drv_free_async(struct drv_stream *stream, uint64_t address) {
    if (stream->capture)
        return DRV_NOT_SUPPORTED;
    struct drv_memory *m = find_exact(address);
    if (!m || m->kind != DRV_DEVICE_MEMORY)
        return DRV_INVALID_VALUE;
    m->leaving = true;
    struct drv_work work = drv_nothing_work();
    work.effect = leave;
    work.memory = m;
    return drv_submit(stream, &work, NULL, 0, NULL);
}

void drv_memory_settle(void) {
    pthread_mutex_lock(&lock);
    struct drv_memory *m = left, *next;
    left = NULL;
    pthread_mutex_unlock(&lock);
    for (; m; m = next) {
        next = m->next;
        forget(m);
    }
}
