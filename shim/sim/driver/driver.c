/* SPDX-License-Identifier: Apache-2.0
 *
 * Coming to life, and a forked child's not having one.
 */
#include "driver.h"

#include <pthread.h>

#include "atomic.h"
#include "channel.h"
#include "visible.h"
#include "worker.h"

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { NEW, READY, FORKED } state;
static enum drv_result failure; /* of the first try; there is no other */
static bool tried;

static struct drv_device device[KREX_SIM_DEVICES];
static unsigned devices;

static void before_fork(void) { drv_lock(); }

static void in_parent(void) { drv_unlock(); }

static void in_child(void) {
    drv_unlock();
    if (state == READY)
        drv_channel_leave();
    state = FORKED; /* as on a real driver: what the parent has is not the child's */
}

static enum drv_result come_to_life(void) {
    enum drv_result r = drv_channel_connect();
    if (r)
        return r;
    uint32_t visible[KREX_SIM_DEVICES];
    devices = drv_visible(drv_channel(), visible);
    for (unsigned i = 0; i < devices; i++)
        device[i] =
            (struct drv_device){.is = &drv_channel()->device[visible[i]], .wire = visible[i]};
    if (!devices)
        return DRV_NO_DEVICE;
    r = drv_memory_init();
    if (!r)
        r = drv_workers_start();
    if (!r && pthread_atfork(before_fork, in_parent, in_child))
        r = DRV_SYSTEM;
    return r;
}

enum drv_result drv_init(void) {
    if (krex_load_acquire(&state) == FORKED)
        return DRV_NOT_INITIALIZED;
    pthread_mutex_lock(&init_lock);
    if (!tried) {
        tried = true;
        failure = come_to_life();
        if (!failure)
            krex_store_release(&state, READY); /* whoever sees it sees all of the above */
    }
    pthread_mutex_unlock(&init_lock);
    return failure ? failure : drv_ready();
}

enum drv_result drv_ready(void) {
    if (krex_load_acquire(&state) != READY)
        return DRV_NOT_INITIALIZED;
    return drv_lost() ? DRV_LOST : DRV_OK;
}

unsigned drv_devices(void) { return devices; }

struct drv_device *drv_device(unsigned ordinal) {
    return ordinal < devices ? &device[ordinal] : NULL;
}

uint64_t drv_thread(void) {
    static uint64_t threads;
    static _Thread_local uint64_t mine;
    if (!mine)
        mine = krex_add_seq_cst(&threads, 1);
    return mine;
}
