/* SPDX-License-Identifier: Apache-2.0
 *
 * Which physical device a CUdevice is: its stable key, whatever CUDA_VISIBLE_DEVICES makes of the
 * ordinals. It is OpenCL's key for the same card: they share a gate.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../board.h"
#include "../elsewhere.h"
#include "../gate.h"
#include "../gpu/key.h"
#include "../gpu/unlisted.h"
#include "api.h"
#include "drain.h"

static bool simulated_key(CUdevice device, char key[KREX_DEVICE_KEY_SIZE]) {
    int number = krex_cu_simulated(device);
    if (number >= 0)
        krex_simulated_key(number, key);
    return number >= 0;
}

/* A part of a card: its name says so, and the newer call gives its own UUID where the older one gives
 * the card's. Parts are separate devices, with one PCI address. */
static bool is_part(CUdevice device, const CUuuid *uuid) {
    char name[256] = "";
    CUuuid card = {{0}};
    KREX_CU_REAL(cuDeviceGetName)(name, sizeof name, device);
    if (strstr(name, " MIG "))
        return true;
    return KREX_CU_REAL(cuDeviceGetUuid)(&card, device) == CUDA_SUCCESS &&
           memcmp(&card, uuid, sizeof card) != 0;
}

static bool part_key(CUdevice device, char key[KREX_DEVICE_KEY_SIZE]) {
    CUuuid uuid;
    if (KREX_CU_REAL(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS || !is_part(device, &uuid))
        return false;
    int n = snprintf(key, KREX_DEVICE_KEY_SIZE, "mig:");
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        n += snprintf(key + n, KREX_DEVICE_KEY_SIZE - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid.bytes[i]);
    return true;
}

static bool address_key(CUdevice device, char key[KREX_DEVICE_KEY_SIZE]) {
    char address[64] = "";
    return KREX_CU_REAL(cuDeviceGetPCIBusId)(address, sizeof address, device) == CUDA_SUCCESS &&
           krex_address_key(address, key);
}

bool krex_cu_context_on(CUdevice device, char key[KREX_DEVICE_KEY_SIZE]) {
    int saved = errno;
    /* What has no key is no device, or the driver is not initialised: the call will say so. */
    bool known = simulated_key(device, key) || part_key(device, key) || address_key(device, key);
    if (known) {
        krex_context_on(key);
        krex_report_unlisted();
    }
    errno = saved;
    return known;
}

static void see(CUcontext context) {
    char key[KREX_DEVICE_KEY_SIZE];
    CUdevice device;
    if (KREX_CU_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return;
    krex_cu_context_on(device, key);
    krex_cu_context_made(context, KREX_CU_NO_PRIMARY);
}

/* Where the process is not attached, each thread looks until it has seen a context, which attaches it
 * if anything can. */
void krex_cu_see_current(void) {
    static __thread uint64_t seen = KREX_SLOW; /* under this attachment */
    CUcontext context = NULL;
    if (seen == krex_load_relaxed(&krex_process.generation))
        return;
    int saved = errno;
    if (KREX_CU_REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && context)
        see(context);
    if (context || krex_process.generation)
        seen = krex_load_relaxed(&krex_process.generation);
    errno = saved;
}
