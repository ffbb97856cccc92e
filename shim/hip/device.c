/* SPDX-License-Identifier: Apache-2.0
 *
 * Which physical device a call is for: its stable key, whatever HIP_VISIBLE_DEVICES and
 * ROCR_VISIBLE_DEVICES make of the ordinals. It is OpenCL's key for the same card: they share a gate.
 * A card in several partitions is one device.
 *
 * There are no contexts to be made: a call has the device that is the thread's current one, 0 if nobody
 * has said otherwise, and the first call that touches it brings its queues to life. That one registers
 * the process, and it is the one that needs a ticket. What only asks, or only names a device, touches
 * none: programs look through all devices before they choose.
 */
#include "device.h"

#include <errno.h>
#include <stdlib.h>

#include "../elsewhere.h"
#include "../gate.h"
#include "../gpu/drain.h"
#include "../gpu/key.h"
#include "../gpu/unlisted.h"
#include "../ticket.h"
#include "api.h"
#include "drain.h"

/* The thread's device, as last seen, and under which attachment. */
static __thread uint64_t seen = KREX_SLOW;
static __thread int seen_device;
static uint32_t initialised;

bool krex_hip_init_enter(void) {
    if (krex_load_relaxed(&initialised))
        return false;
    return (krex_process.generation || getenv("KREX_COMMAND")) && krex_heavy_enter();
}

void krex_hip_init_leave(bool mine) {
    krex_store_relaxed(&initialised, 1);
    krex_heavy_leave(mine);
}

static bool current_device(int *device) {
    bool mine = krex_hip_init_enter();
    hipError_t before = krex_hip_before();
    hipError_t result = krex_hip_quietly(before, KREX_HIP_REAL(hipGetDevice)(device));
    krex_hip_init_leave(mine);
    return result == hipSuccess;
}

void *krex_hip_current(void) {
    int device;
    return current_device(&device) ? krex_hip_handle(device) : NULL;
}

static bool simulated_key(int device, char key[KREX_DEVICE_KEY_SIZE]) {
    int number = krex_hip_simulated(device);
    if (number >= 0)
        krex_simulated_key(number, key);
    return number >= 0;
}

static bool address_key(int device, char key[KREX_DEVICE_KEY_SIZE]) {
    char address[64] = "";
    return KREX_HIP_REAL(hipDeviceGetPCIBusId)(address, sizeof address, device) == hipSuccess &&
           krex_address_key(address, key);
}

/* The drain is told before the call, which may be a submission. */
static bool first_touch(int device, const char *key) {
    bool known = krex_gpu_primary_of(&krex_hip_gpu, device);
    krex_context_on(key);
    krex_report_unlisted();
    bool mine = !known && krex_context_enter(key);
    krex_gpu_context_made(&krex_hip_gpu, krex_hip_handle(device), device);
    return mine;
}

/* Where the process is not attached, each thread looks until it has seen a device, which attaches it
 * if anything can. */
bool krex_hip_touch(void) {
    char key[KREX_DEVICE_KEY_SIZE];
    bool mine = false;
    int device, saved = errno;
    if (seen == krex_load_relaxed(&krex_process.generation))
        return false;
    if (current_device(&device) && (simulated_key(device, key) || address_key(device, key))) {
        mine = first_touch(device, key);
        seen_device = device;
        seen = krex_load_relaxed(&krex_process.generation);
    }
    errno = saved;
    return mine;
}

void krex_hip_see(void) {
    if (krex_hip_touch())
        krex_context_leave(true);
}

/* A thread that is past its first call does not look again: so we do, if there is somebody to tell.
 * Some programs say their device before every call. */
void krex_hip_device_changed(void) {
    int device;
    krex_store_relaxed(&initialised, 1); /* by that call, if not before */
    if (krex_load_relaxed(&krex_process.generation) && current_device(&device) &&
        device == seen_device && seen == krex_load_relaxed(&krex_process.generation))
        return;
    seen = KREX_SLOW;
    if (krex_load_relaxed(&krex_process.generation))
        krex_hip_see();
}
