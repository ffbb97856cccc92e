/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "module.h"
#include "worker.h"

static uint32_t last_number;   /* no two streams of the process have one: 0 is the legacy one */
static struct drv_stream *own; /* those that are a thread's, and end with it */
static pthread_key_t thread_ends;
static pthread_once_t key_made = PTHREAD_ONCE_INIT;

static struct drv_stream *make(struct drv_context *context, bool blocking, int priority) {
    struct drv_stream *s = calloc(1, sizeof *s);
    if (!s || !drv_handle_add(DRV_STREAM, s)) {
        free(s);
        return NULL;
    }
    s->context = context;
    s->blocking = blocking;
    s->priority = priority;
    s->references = 1;
    drv_lock();
    s->number = context->legacy ? ++last_number : 0;
    s->id = last_number + context->id * UINT64_C(1000000);
    s->next = context->streams;
    context->streams = s;
    drv_unlock();
    return s;
}

enum drv_result drv_stream_create(struct drv_context *context, bool blocking, int priority,
                                  struct drv_stream **made) {
    *made = make(context, blocking, priority);
    return *made ? DRV_OK : DRV_OUT_OF_MEMORY;
}

void drv_stream_release(struct drv_stream *stream) {
    if (--stream->references)
        return;
    struct drv_stream **place = &stream->context->streams;
    while (*place && *place != stream)
        place = &(*place)->next;
    if (*place)
        *place = stream->next;
    for (place = &own; *place && *place != stream; place = &(*place)->next_own)
        continue;
    if (*place)
        *place = stream->next_own;
    free(stream);
}

/* Locked. */
static void destroy(struct drv_stream *stream) {
    drv_handle_remove(stream);
    if (stream->capture)
        drv_capture_stream_gone(stream);
    stream->destroyed = true;
    drv_stream_release(stream);
}

/* What is under way on it goes on, as on a real one. */
enum drv_result drv_stream_destroy(struct drv_stream *stream) {
    drv_lock();
    destroy(stream);
    drv_unlock();
    return DRV_OK;
}

/* A thread has ended. */
static void end_own(void *first) {
    uint64_t thread = drv_thread();
    (void)first;
    drv_lock();
    struct drv_stream *next;
    for (struct drv_stream *s = own; s; s = next) {
        next = s->next_own;
        if (s->thread == thread && !s->destroyed)
            destroy(s);
    }
    drv_unlock();
}

static void make_key(void) { pthread_key_create(&thread_ends, end_own); }

static struct drv_stream *find_own(const struct drv_context *context, uint64_t thread) {
    struct drv_stream *s = own;
    while (s && (s->thread != thread || s->context != context || s->destroyed))
        s = s->next_own;
    return s;
}

struct drv_stream *drv_stream_per_thread(struct drv_context *context) {
    uint64_t thread = drv_thread();
    drv_lock();
    struct drv_stream *s = find_own(context, thread);
    drv_unlock();
    if (s)
        return s;
    s = make(context, true, 0);
    if (!s)
        return NULL;
    pthread_once(&key_made, make_key);
    pthread_setspecific(thread_ends, s); /* whatever it is: that the key has a value counts */
    drv_lock();
    s->thread = thread;
    s->next_own = own;
    own = s;
    drv_unlock();
    return s;
}

/* Locked. The legacy stream stands for all that it waits for. */
static bool concerns(const struct drv_stream *stream, const struct drv_stream *other) {
    return other == stream || (!stream->number && other->blocking);
}

/* Locked. The newest that the stream has to wait for; 0: all is done. */
static uint64_t newest(const struct drv_stream *stream) {
    uint64_t seq = 0;
    for (const struct drv_stream *s = stream->context->streams; s; s = s->next)
        if (concerns(stream, s) && s->done != s->submitted && s->last > seq)
            seq = s->last;
    return seq;
}

/* Locked. Whether something that was submitted up to seq is not done. */
static bool is_behind(const struct drv_stream *stream, uint64_t seq) {
    for (struct drv_command *c = stream->context->oldest; c && c->seq <= seq; c = c->younger)
        if (concerns(stream, c->stream))
            return true;
    return false;
}

enum drv_result drv_stream_synchronize(struct drv_stream *stream) {
    drv_loading_wait(stream->context);
    drv_lock();
    enum drv_result r = drv_capture_check_stream(stream);
    uint64_t seq = newest(stream);
    while (!r && seq && is_behind(stream, seq) && !drv_lost())
        drv_wait_change();
    if (!r)
        r = drv_lost() ? DRV_LOST : stream->context->error;
    drv_unlock();
    return r;
}

enum drv_result drv_stream_query(struct drv_stream *stream) {
    drv_loading_wait(stream->context);
    drv_lock();
    enum drv_result r = drv_capture_check_stream(stream);
    if (!r)
        r = drv_lost() ? DRV_LOST : stream->context->error;
    if (!r && newest(stream))
        r = DRV_NOT_READY;
    drv_unlock();
    return r;
}

enum drv_result drv_stream_wait(struct drv_stream *stream, struct drv_event *event) {
    drv_lock();
    if (stream->capture || event->capture) {
        enum drv_result r = drv_capture_wait(stream, event);
        drv_unlock();
        return r;
    }
    uint64_t seq = event->pending;
    drv_unlock();
    if (!seq)
        return DRV_OK;
    struct drv_work work = drv_nothing_work();
    return drv_submit(stream, &work, &seq, 1, NULL);
}
