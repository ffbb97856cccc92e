/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the face libamdhip64.so share. Each entry point is defined once, without _spt: those
 * forms come from api.def (stubs.c), and differ only in what hip_stream() makes of stream 0. Every name
 * that no file here defines is one that returns hipErrorNotSupported.
 *
 * An entry point returns what hip_result() or hip_error() gave it: they remember it for hipGetLastError.
 */
#ifndef KREX_SIM_HIP_FACE_H
#define KREX_SIM_HIP_FACE_H

#include "hip/types.h"
#include "sim/driver/driver.h"

/* Prototypes of everything, so that a definition that differs from the header's does not compile. */
int krex_sim_device_number(int device);

#pragma GCC visibility push(default)
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) ret symbol params;
#include "hip/api.def"
#undef KREX_HIP_API
#pragma GCC visibility pop

enum hip_error {
    HIP_INVALID_VALUE = 1,
    HIP_INVALID_CONFIGURATION = 9,
    HIP_INVALID_SYMBOL = 13,
    HIP_INVALID_DIRECTION = 21,
    HIP_INVALID_DEVICE_FUNCTION = 98,
    HIP_NO_DEVICE = 100,
    HIP_LAUNCH_FAILURE = 719,
    HIP_ILLEGAL_STATE = 401,
    HIP_NOT_FOUND = 500,
    HIP_NOT_SUPPORTED = 801,
};

hipError_t hip_result(enum drv_result result);
void hip_remember(hipError_t error);

static inline hipError_t hip_error(enum hip_error error) {
    hip_remember(error);
    return error;
}

/* The beginning of nearly every entry point. The library comes to life with the first. */
hipError_t hip_ready(void);
/* The same, and *context is the current device's, which has no sticky error; it is made if need be. */
hipError_t hip_enter(struct drv_context **context);

/* The same, and what the handle stands for: 0 and the two special ones too, on the current device. */
hipError_t hip_stream(hipStream_t handle, struct drv_stream **stream);

/* Not the current device's context: */
hipError_t hip_context_of(struct drv_device *device, struct drv_context **context);
hipError_t hip_event(hipEvent_t handle, struct drv_event **event);
hipError_t hip_device(int ordinal, struct drv_device **device);

/* The model has one name for a device, which may be that of another vendor's card. */
#define HIP_SIM_NAME "%s, as an AMD GPU"

int hip_ordinal(const struct drv_device *device);
int hip_current_ordinal(void);
hipError_t hip_set_ordinal(int ordinal);

/* Inside of an _spt form stream 0 is the thread's own. stubs.c sets it. */
extern _Thread_local bool hip_per_thread;

#endif
