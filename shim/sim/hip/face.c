/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

#define STREAM_LEGACY ((hipStream_t)1)
#define STREAM_PER_THREAD ((hipStream_t)2)

enum { NOT_READY = 600 };

static const hipError_t results[DRV_RESULTS] = {
    [DRV_OK] = hipSuccess,
    [DRV_INVALID_VALUE] = HIP_INVALID_VALUE,
    [DRV_OUT_OF_MEMORY] = 2,
    [DRV_NOT_INITIALIZED] = 3,
    [DRV_NO_DEVICE] = HIP_NO_DEVICE,
    [DRV_INVALID_DEVICE] = 101,
    [DRV_INVALID_IMAGE] = 200,
    [DRV_INVALID_CONTEXT] = 201,
    [DRV_CONTEXT_DESTROYED] = 709,
    [DRV_PRIMARY_ACTIVE] = 708,
    [DRV_INVALID_PTX] = 218,
    [DRV_NO_BINARY] = 209,
    [DRV_UNSUPPORTED_PTX] = 218,
    [DRV_FILE_NOT_FOUND] = 301,
    [DRV_SYSTEM] = 304,
    [DRV_INVALID_HANDLE] = 400,
    [DRV_NOT_FOUND] = HIP_NOT_FOUND,
    [DRV_NOT_READY] = NOT_READY,
    [DRV_ILLEGAL_ADDRESS] = 700,
    [DRV_LAUNCH_RESOURCES] = 701,
    [DRV_LAUNCH_TIMEOUT] = 702,
    [DRV_LAUNCH_FAILED] = HIP_LAUNCH_FAILURE,
    [DRV_ALREADY_REGISTERED] = 712,
    [DRV_NOT_REGISTERED] = 713,
    [DRV_NOT_PERMITTED] = HIP_NOT_SUPPORTED,
    [DRV_NOT_SUPPORTED] = HIP_NOT_SUPPORTED,
    [DRV_COOPERATIVE_TOO_LARGE] = 720,
    [DRV_PEER_UNSUPPORTED] = 217,
    [DRV_LOST] = 999, /* what programs see of a device that fell off the bus */
    [DRV_CAPTURE_UNSUPPORTED] = 900,
    [DRV_CAPTURE_INVALIDATED] = 901,
    [DRV_CAPTURE_MERGE] = 902,
    [DRV_CAPTURE_UNMATCHED] = 903,
    [DRV_CAPTURE_UNJOINED] = 904,
    [DRV_CAPTURE_ISOLATION] = 905,
    [DRV_CAPTURE_IMPLICIT] = 906,
    [DRV_CAPTURED_EVENT] = 907,
    [DRV_CAPTURE_WRONG_THREAD] = 908,
    [DRV_GRAPH_UPDATE_FAILURE] = 910,
};

static _Thread_local hipError_t last_error;
static _Thread_local int ordinal;

/* "Not ready" is an answer. */
void hip_remember(hipError_t error) {
    if (error && error != NOT_READY)
        last_error = error;
}

hipError_t hip_result(enum drv_result result) {
    hip_remember(results[result]);
    return results[result];
}

hipError_t hipPeekAtLastError(void) { return last_error; }

hipError_t hipGetLastError(void) {
    hipError_t r = last_error;
    last_error = hipSuccess;
    return r;
}

/* Unlike hipGetLastError it exists for programs that don't want what is pending from before. */
hipError_t hipExtGetLastError(void) { return hipGetLastError(); }

hipError_t hip_ready(void) {
    enum drv_result r = drv_ready();
    return hip_result(r == DRV_NOT_INITIALIZED ? drv_init() : r);
}

static bool is_live(const struct drv_device *device) {
    drv_lock();
    bool live = device->primary && device->primary->live;
    drv_unlock();
    return live;
}

hipError_t hip_context_of(struct drv_device *device, struct drv_context **context) {
    enum drv_result r = DRV_OK;
    if (!is_live(device))
        r = drv_primary_retain(device, context);
    if (r)
        return hip_result(r);
    *context = device->primary;
    drv_lock();
    r = (*context)->live ? (*context)->error : DRV_CONTEXT_DESTROYED;
    drv_unlock();
    return hip_result(r);
}

hipError_t hip_enter(struct drv_context **context) {
    struct drv_device *device;
    hipError_t r = hip_device(ordinal, &device);
    return r ? r : hip_context_of(device, context);
}

hipError_t hip_stream(hipStream_t handle, struct drv_stream **stream) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r)
        return r;
    if (!handle)
        handle = hip_per_thread ? STREAM_PER_THREAD : STREAM_LEGACY;
    if (handle == STREAM_LEGACY)
        *stream = context->legacy;
    else if (handle == STREAM_PER_THREAD)
        *stream = drv_stream_per_thread(context);
    else
        *stream = drv_handle_is(DRV_STREAM, handle) ? (struct drv_stream *)handle : NULL;
    if (handle == STREAM_PER_THREAD && !*stream)
        return hip_result(DRV_OUT_OF_MEMORY);
    return hip_result(*stream ? DRV_OK : DRV_INVALID_HANDLE);
}

hipError_t hip_event(hipEvent_t handle, struct drv_event **event) {
    hipError_t r = hip_ready();
    *event = (struct drv_event *)handle;
    return r ? r : hip_result(drv_handle_is(DRV_EVENT, handle) ? DRV_OK : DRV_INVALID_HANDLE);
}

hipError_t hip_device(int number, struct drv_device **device) {
    hipError_t r = hip_ready();
    *device = r || number < 0 ? NULL : drv_device((unsigned)number);
    return r ? r : hip_result(*device ? DRV_OK : DRV_INVALID_DEVICE);
}

int hip_ordinal(const struct drv_device *device) { return (int)(device - drv_device(0)); }

int hip_current_ordinal(void) { return ordinal; }

hipError_t hip_set_ordinal(int number) {
    struct drv_device *device;
    hipError_t r = hip_device(number, &device);
    if (!r)
        ordinal = number;
    return r;
}
