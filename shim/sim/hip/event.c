/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

/* The upper flags choose how far a record makes memory visible: here it always is. */
enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4, KNOWN = 7, EXTERNAL = 1 };
#define SCOPES 0xe0000000u

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags) {
    struct drv_context *context;
    struct drv_event *made;
    hipError_t r = hip_enter(&context);
    if (r || !event || (flags & ~SCOPES) > KNOWN)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (flags & INTERPROCESS)
        return hip_error(HIP_NOT_SUPPORTED);
    r = hip_result(
        drv_event_create(context, !(flags & DISABLE_TIMING), flags & BLOCKING_SYNC, &made));
    if (!r)
        *event = (hipEvent_t)made;
    return r;
}

hipError_t hipEventCreate(hipEvent_t *event) { return hipEventCreateWithFlags(event, 0); }

hipError_t hipEventDestroy(hipEvent_t event) {
    struct drv_event *e;
    hipError_t r = hip_event(event, &e);
    return r ? r : hip_result(drv_event_destroy(e));
}

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags) {
    struct drv_stream *s;
    struct drv_event *e;
    hipError_t r = hip_event(event, &e);
    if (!r)
        r = hip_stream(stream, &s);
    if (r || flags > EXTERNAL)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (e->context != s->context)
        return hip_result(DRV_INVALID_HANDLE);
    return hip_result(drv_event_record(e, s));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    return hipEventRecordWithFlags(event, stream, 0);
}

hipError_t hipEventQuery(hipEvent_t event) {
    struct drv_event *e;
    hipError_t r = hip_event(event, &e);
    return r ? r : hip_result(drv_event_query(e));
}

hipError_t hipEventSynchronize(hipEvent_t event) {
    struct drv_event *e;
    hipError_t r = hip_event(event, &e);
    return r ? r : hip_result(drv_event_synchronize(e));
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop) {
    struct drv_event *from, *to;
    hipError_t r = hip_event(start, &from);
    if (!r)
        r = hip_event(stop, &to);
    if (r || !ms)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    return hip_result(drv_event_elapsed(from, to, ms));
}
