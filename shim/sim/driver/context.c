/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, and which one is current in a thread. A context that is destroyed stays current where it
 * was, and every call there says so. To make or end one is to wait for the machine: not under drv_lock.
 */
#include <pthread.h>
#include <stdlib.h>

#include "module.h"
#include "worker.h"

enum { DEPTH = 64 };

static pthread_mutex_t primary_lock =
    PTHREAD_MUTEX_INITIALIZER; /* outermost; one is made, or ended */
static uint64_t last_id;
static struct drv_context *contexts; /* all that there ever were: they are never freed */

static _Thread_local struct {
    struct drv_context *context[DEPTH];
    unsigned depth;
} current;

static enum drv_result bring_to_life(struct drv_context *c) {
    struct krex_sim_packet packet = {.op = KREX_SIM_CONTEXT, .device = c->device->wire};
    enum drv_result r = drv_packet(&packet);
    if (r)
        return r;
    drv_lock();
    c->id = ++last_id;
    c->wire = packet.context;
    c->error = DRV_OK;
    c->live = true;
    drv_unlock();
    r = drv_stream_create(c, true, 0, &c->legacy);
    return r ? r : drv_stream_create(c, false, 0, &c->records);
}

static struct drv_context *make(struct drv_device *device, bool primary) {
    struct drv_context *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->device = device;
    c->primary = primary;
    drv_lock();
    c->next = contexts;
    contexts = c;
    drv_unlock();
    return c;
}

enum drv_result drv_context_create(struct drv_device *device, unsigned flags,
                                   struct drv_context **made) {
    struct drv_context *c = make(device, false);
    if (!c)
        return DRV_OUT_OF_MEMORY;
    c->flags = flags;
    enum drv_result r = bring_to_life(c);
    if (!r && !drv_handle_add(DRV_CONTEXT, c))
        r = DRV_OUT_OF_MEMORY;
    *made = r ? NULL : c;
    if (r && c->live)
        drv_context_destroy(c);
    return r;
}

/* The streams go with it, but for those whose commands the worker still ends. */
static void drop_streams(struct drv_context *c) {
    drv_lock();
    c->legacy = NULL;
    c->records = NULL;
    struct drv_stream *next;
    for (struct drv_stream *s = c->streams; s; s = next) {
        next = s->next;
        if (s->destroyed)
            continue;
        drv_handle_remove(s);
        s->destroyed = true;
        drv_stream_release(s);
    }
    drv_unlock();
}

enum drv_result drv_context_destroy(struct drv_context *context) {
    drv_handle_remove(context);
    drv_context_idle(context); /* a sticky error does not keep it from ending */
    drv_lock();
    if (context->captures)
        drv_capture_context_gone(context);
    context->live = false;
    drv_unlock();
    drv_module_context_gone(context);
    drv_memory_context_gone(context);
    struct krex_sim_packet packet = {.op = KREX_SIM_CONTEXT_END, .context = context->wire};
    packet.device = context->device->wire;
    enum drv_result r = drv_packet(&packet);
    context->wire = 0;
    drop_streams(context);
    return r == DRV_LOST ? r : DRV_OK;
}

/* primary_lock is held. */
static enum drv_result revive(struct drv_device *device) {
    struct drv_context *c = device->primary;
    if (c && c->live)
        return DRV_OK;
    if (!c && !(c = make(device, true)))
        return DRV_OUT_OF_MEMORY;
    device->primary = c;
    c->flags = device->primary_flags;
    enum drv_result r = bring_to_life(c);
    if (!r && !drv_handle_add(DRV_CONTEXT, c))
        r = DRV_OUT_OF_MEMORY;
    return r;
}

enum drv_result drv_primary_retain(struct drv_device *device, struct drv_context **context) {
    pthread_mutex_lock(&primary_lock);
    enum drv_result r = revive(device);
    if (!r)
        device->primary_references++;
    *context = r ? NULL : device->primary;
    pthread_mutex_unlock(&primary_lock);
    return r;
}

enum drv_result drv_primary_release(struct drv_device *device) {
    enum drv_result r = DRV_INVALID_CONTEXT;
    pthread_mutex_lock(&primary_lock);
    if (device->primary_references) {
        r = DRV_OK;
        if (--device->primary_references == 0)
            r = drv_context_destroy(device->primary);
    }
    pthread_mutex_unlock(&primary_lock);
    return r;
}

enum drv_result drv_primary_reset(struct drv_device *device) {
    enum drv_result r = DRV_OK;
    pthread_mutex_lock(&primary_lock);
    if (device->primary && device->primary->live)
        r = drv_context_destroy(device->primary);
    pthread_mutex_unlock(&primary_lock);
    return r;
}

/* Locked. The oldest under way is the one to wait for: the list is in order of submission. */
static bool is_behind(const struct drv_context *context, uint64_t seq) {
    return context->oldest && context->oldest->seq <= seq;
}

/* Locked at the beginning and the end. */
static enum drv_result await(struct drv_context *context) {
    uint64_t seq = context->newest ? context->newest->seq : 0;
    while (is_behind(context, seq) && !drv_lost())
        drv_wait_change();
    return drv_lost() ? DRV_LOST : context->error;
}

enum drv_result drv_context_idle(struct drv_context *context) {
    drv_lock();
    enum drv_result r = await(context);
    drv_unlock();
    return r;
}

enum drv_result drv_context_synchronize(struct drv_context *context) {
    drv_loading_wait(context);
    drv_lock();
    enum drv_result r = drv_capture_check_context(context);
    if (!r)
        r = await(context);
    drv_unlock();
    drv_memory_settle();
    return r;
}

struct drv_context *drv_current(void) {
    return current.depth ? current.context[current.depth - 1] : NULL;
}

void drv_set_current(struct drv_context *context) {
    if (current.depth)
        current.depth--;
    if (context)
        current.context[current.depth++] = context;
}

enum drv_result drv_push_current(struct drv_context *context) {
    if (current.depth == DEPTH)
        return DRV_OUT_OF_MEMORY;
    current.context[current.depth++] = context;
    return DRV_OK;
}

struct drv_context *drv_pop_current(void) {
    return current.depth ? current.context[--current.depth] : NULL;
}

enum drv_result drv_use_context(struct drv_context **context) {
    enum drv_result r = drv_ready();
    if (r)
        return r;
    struct drv_context *c = drv_current();
    *context = c;
    if (!c)
        return DRV_INVALID_CONTEXT;
    drv_lock();
    r = c->live ? c->error : DRV_CONTEXT_DESTROYED;
    drv_unlock();
    return r;
}

/* On a stream of its own: the record is behind everything, and nothing is behind the record. */
enum drv_result drv_context_record(struct drv_context *context, struct drv_event *event) {
    drv_lock();
    enum drv_result r = drv_capture_check_context(context);
    struct drv_work work = {0};
    if (!r) {
        if (event->capture)
            drv_capture_event_forget(event);
        event->recorded = true;
        work = drv_event_work(event);
        work.flags |= KREX_SIM_ALL;
    }
    drv_unlock();
    return r ? r : drv_submit(context->records, &work, NULL, 0, NULL);
}

static struct drv_stream *nth(struct drv_context *context, unsigned n) {
    struct drv_stream *s = context->streams;
    while (s && n--)
        s = s->next;
    return s;
}

/* What is submitted to the streams that there are waits; those that are made later have no such order. */
enum drv_result drv_context_wait(struct drv_context *context, struct drv_event *event) {
    enum drv_result r = DRV_OK;
    for (unsigned n = 0; !r; n++) {
        drv_lock();
        r = n ? DRV_OK : drv_capture_check_context(context);
        struct drv_stream *s = nth(context, n);
        if (s)
            s->references++;
        drv_unlock();
        if (!s)
            break;
        if (!r && !s->destroyed)
            r = drv_stream_wait(s, event);
        drv_lock();
        drv_stream_release(s);
        drv_unlock();
    }
    return r;
}
