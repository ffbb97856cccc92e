/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "module.h"
#include "worker.h"

enum drv_result drv_event_create(struct drv_context *context, bool timing, bool blocking,
                                 struct drv_event **made) {
    struct drv_event *e = calloc(1, sizeof *e);
    if (!e || !drv_handle_add(DRV_EVENT, e)) {
        free(e);
        return DRV_OUT_OF_MEMORY;
    }
    e->context = context;
    e->timing = timing;
    e->blocking = blocking;
    e->references = 1;
    *made = e;
    return DRV_OK;
}

void drv_event_release(struct drv_event *event) {
    if (!--event->references)
        free(event);
}

enum drv_result drv_event_destroy(struct drv_event *event) {
    drv_handle_remove(event);
    drv_lock();
    event->destroyed = true;
    if (event->capture)
        drv_capture_event_forget(event);
    drv_event_release(event);
    drv_unlock();
    return DRV_OK;
}

struct drv_work drv_event_work(struct drv_event *event) {
    struct drv_work work = drv_nothing_work();
    event->references++;
    work.event = event;
    return work;
}

enum drv_result drv_event_record(struct drv_event *event, struct drv_stream *stream) {
    drv_lock();
    if (stream->capture) {
        enum drv_result r = drv_capture_record(stream, event);
        drv_unlock();
        return r;
    }
    if (event->capture)
        drv_capture_event_forget(event);
    event->recorded = true;
    struct drv_work work = drv_event_work(event);
    drv_unlock();
    return drv_submit(stream, &work, NULL, 0, NULL);
}

/* Locked. What stands against a query or a wait. */
static enum drv_result check(struct drv_event *event) {
    if (drv_lost())
        return DRV_LOST;
    if (!event->context->live)
        return DRV_CONTEXT_DESTROYED;
    enum drv_result r = event->context->error;
    if (!r)
        r = drv_capture_check_event(event);
    return r ? r : drv_capture_check_unsafe(event->context);
}

enum drv_result drv_event_query(struct drv_event *event) {
    drv_loading_wait(event->context);
    drv_lock();
    enum drv_result r = check(event);
    if (!r && event->pending)
        r = DRV_NOT_READY;
    drv_unlock();
    return r;
}

enum drv_result drv_event_synchronize(struct drv_event *event) {
    drv_loading_wait(event->context);
    drv_lock();
    enum drv_result r = check(event);
    uint64_t seq = event->pending;
    drv_unlock();
    return r || !seq ? r : drv_wait_seq(event->context, seq);
}

/* Locked. */
static enum drv_result check_elapsed(const struct drv_event *from, const struct drv_event *to) {
    if (from->context != to->context || !from->timing || !to->timing || !from->recorded ||
        !to->recorded)
        return DRV_INVALID_HANDLE;
    if (drv_lost())
        return DRV_LOST;
    if (from->context->error)
        return from->context->error;
    return from->pending || to->pending ? DRV_NOT_READY : DRV_OK;
}

enum drv_result drv_event_elapsed(struct drv_event *from, struct drv_event *to, float *ms) {
    drv_lock();
    enum drv_result r = check_elapsed(from, to);
    if (!r)
        *ms = (float)((double)(int64_t)(to->end_ns - from->end_ns) / 1e6);
    drv_unlock();
    return r;
}
