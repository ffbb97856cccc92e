/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4, EXTERNAL = 1 };

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !phEvent || Flags > (BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (Flags & INTERPROCESS)
        return cu_result(DRV_NOT_SUPPORTED);
    struct drv_event *event;
    r = cu_result(
        drv_event_create(context, !(Flags & DISABLE_TIMING), Flags & BLOCKING_SYNC, &event));
    if (!r)
        *phEvent = (CUevent)event;
    return r;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
    struct drv_event *event;
    CUresult r = cu_event(hEvent, &event);
    return r ? r : cu_result(drv_event_destroy(event));
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    struct drv_stream *stream;
    struct drv_event *event;
    CUresult r = cu_event(hEvent, &event);
    if (!r)
        r = cu_stream(hStream, &stream);
    if (r || flags > EXTERNAL)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (event->context != stream->context)
        return cu_result(DRV_INVALID_HANDLE);
    return cu_result(drv_event_record(event, stream));
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventQuery(CUevent hEvent) {
    struct drv_event *event;
    CUresult r = cu_event(hEvent, &event);
    return r ? r : cu_result(drv_event_query(event));
}

CUresult cuEventSynchronize(CUevent hEvent) {
    struct drv_event *event;
    CUresult r = cu_event(hEvent, &event);
    return r ? r : cu_result(drv_event_synchronize(event));
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    struct drv_event *from, *to;
    CUresult r = cu_event(hStart, &from);
    if (!r)
        r = cu_event(hEnd, &to);
    if (r || !pMilliseconds)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return cu_result(drv_event_elapsed(from, to, pMilliseconds));
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
