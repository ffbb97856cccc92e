/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: accounts only. What a stream frees goes back to the device with the next call that asks for
 * memory, or waits, whatever the pool's threshold.
 */
#include <stdlib.h>

#include "driver.h"

enum drv_result drv_pool_create(struct drv_device *device, struct drv_pool **made) {
    struct drv_pool *p = calloc(1, sizeof *p);
    if (!p || !drv_handle_add(DRV_POOL, p)) {
        free(p);
        return DRV_OUT_OF_MEMORY;
    }
    p->device = device;
    *made = p;
    return DRV_OK;
}

/* Memory that is in use keeps its pointer to the pool: so a pool that had any stays, without a handle. */
void drv_pool_destroy(struct drv_pool *pool) {
    drv_handle_remove(pool);
    if (pool->device->current_pool == pool)
        pool->device->current_pool = NULL;
    drv_memory_settle();
    if (!pool->used)
        free(pool);
}

enum drv_result drv_pool_default(struct drv_device *device, struct drv_pool **pool) {
    drv_lock();
    enum drv_result r = device->pool ? DRV_OK : drv_pool_create(device, &device->pool);
    drv_unlock();
    *pool = device->pool;
    return r;
}

enum drv_result drv_pool_current(struct drv_device *device, struct drv_pool **pool) {
    *pool = device->current_pool;
    return *pool ? DRV_OK : drv_pool_default(device, pool);
}
