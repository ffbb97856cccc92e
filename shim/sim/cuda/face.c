/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

static const CUresult results[DRV_RESULTS] = {
    [DRV_OK] = 0,
    [DRV_INVALID_VALUE] = 1,
    [DRV_OUT_OF_MEMORY] = 2,
    [DRV_NOT_INITIALIZED] = 3,
    [DRV_NO_DEVICE] = 100,
    [DRV_INVALID_DEVICE] = 101,
    [DRV_INVALID_IMAGE] = 200,
    [DRV_INVALID_CONTEXT] = 201,
    [DRV_CONTEXT_DESTROYED] = 709,
    [DRV_PRIMARY_ACTIVE] = 708,
    [DRV_INVALID_PTX] = 218,
    [DRV_NO_BINARY] = 209,
    [DRV_UNSUPPORTED_PTX] = 222,
    [DRV_FILE_NOT_FOUND] = 301,
    [DRV_SYSTEM] = 304,
    [DRV_INVALID_HANDLE] = 400,
    [DRV_NOT_FOUND] = 500,
    [DRV_NOT_READY] = 600,
    [DRV_ILLEGAL_ADDRESS] = 700,
    [DRV_LAUNCH_RESOURCES] = 701,
    [DRV_LAUNCH_TIMEOUT] = 702,
    [DRV_LAUNCH_FAILED] = 719,
    [DRV_ALREADY_REGISTERED] = 712,
    [DRV_NOT_REGISTERED] = 713,
    [DRV_NOT_PERMITTED] = 800,
    [DRV_NOT_SUPPORTED] = 801,
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

CUresult cu_result(enum drv_result result) { return results[result]; }

CUresult cu_enter(struct drv_context **context) { return cu_result(drv_use_context(context)); }

CUresult cu_stream(CUstream handle, struct drv_stream **stream) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r)
        return r;
    if (!handle)
        handle = cu_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY)
        *stream = context->legacy;
    else if (handle == CU_STREAM_PER_THREAD)
        *stream = drv_stream_per_thread(context);
    else
        *stream = drv_handle_is(DRV_STREAM, handle) ? (struct drv_stream *)handle : NULL;
    if (handle == CU_STREAM_PER_THREAD && !*stream)
        return cu_result(DRV_OUT_OF_MEMORY);
    return *stream ? CUDA_SUCCESS : cu_result(DRV_INVALID_HANDLE);
}

CUresult cu_event(CUevent handle, struct drv_event **event) {
    enum drv_result r = drv_ready();
    *event = (struct drv_event *)handle;
    if (!r && !drv_handle_is(DRV_EVENT, handle))
        r = DRV_INVALID_HANDLE;
    return cu_result(r);
}

CUresult cu_context(CUcontext handle, struct drv_context **context) {
    enum drv_result r = drv_ready();
    *context = (struct drv_context *)handle;
    if (!r && !drv_handle_is(DRV_CONTEXT, handle))
        r = DRV_INVALID_CONTEXT;
    return cu_result(r);
}

CUresult cu_device(CUdevice ordinal, struct drv_device **device) {
    enum drv_result r = drv_ready();
    *device = r || ordinal < 0 ? NULL : drv_device((unsigned)ordinal);
    if (!r && !*device)
        r = DRV_INVALID_DEVICE;
    return cu_result(r);
}

CUdevice cu_ordinal(const struct drv_device *device) { return (CUdevice)(device - drv_device(0)); }
