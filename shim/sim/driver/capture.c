/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

/* The nodes that a stream's next one comes after, or that an event stands for. */
struct place {
    struct place *next;        /* of the capture's streams */
    struct drv_stream *stream; /* counted; NULL: an event's, or of a stream that was destroyed */
    struct drv_node **nodes;
    size_t count;
};

struct drv_capture {
    struct drv_capture *next;        /* of the context */
    struct drv_capture *next_of_all; /* of the process */
    struct drv_context *context;     /* of the stream where it began */
    struct drv_stream *stream;
    struct place *places; /* of its streams, that one included */
    struct drv_graph *graph;
    bool owns_graph;
    bool invalid, ended;
    enum drv_capture_mode mode;
    uint64_t thread;
    uint64_t id;
    unsigned references; /* its own, until it has ended; each event's */
};

static struct drv_capture *captures; /* those that have begun and not ended */
static uint64_t last_id;
static _Thread_local enum drv_capture_mode thread_mode;

/* Places. */

static void place_free(struct place *place) {
    if (place)
        free(place->nodes);
    free(place);
}

static bool place_has(const struct place *place, const struct drv_node *node) {
    for (size_t i = 0; i < place->count; i++)
        if (place->nodes[i] == node)
            return true;
    return false;
}

static bool place_add(struct place *place, struct drv_node *const *nodes, size_t count) {
    struct drv_node **grown = reallocarray(place->nodes, place->count + count + 1, sizeof *grown);
    if (!grown)
        return false;
    place->nodes = grown;
    for (size_t i = 0; i < count; i++)
        if (!place_has(place, nodes[i]))
            grown[place->count++] = nodes[i];
    return true;
}

static struct place *place_make(struct drv_node *const *nodes, size_t count) {
    struct place *place = calloc(1, sizeof *place);
    if (place && place_add(place, nodes, count))
        return place;
    place_free(place);
    return NULL;
}

/* Lists. */

static void unlist(struct drv_capture *capture) {
    struct drv_capture **at = &captures;
    while (*at != capture)
        at = &(*at)->next_of_all;
    *at = capture->next_of_all;
    at = &capture->context->captures;
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
}

static void enlist(struct drv_capture *capture) {
    capture->next_of_all = captures;
    captures = capture;
    capture->next = capture->context->captures;
    capture->context->captures = capture;
}

static void release(struct drv_capture *capture) {
    if (!--capture->references)
        free(capture);
}

/* A stream's part in a capture begins, and ends. */

static bool join(struct drv_capture *capture, struct drv_stream *stream,
                 struct drv_node *const *nodes, size_t count) {
    struct place *place = place_make(nodes, count);
    if (!place)
        return false;
    place->stream = stream;
    place->next = capture->places;
    capture->places = place;
    stream->capture = capture;
    stream->captured = place;
    stream->references++;
    return true;
}

static void leave(struct place *place) {
    struct drv_stream *stream = place->stream;
    place->stream = NULL;
    if (!stream)
        return;
    stream->capture = NULL;
    stream->captured = NULL;
    drv_stream_release(stream);
}

static void leave_all(struct drv_capture *capture) {
    while (capture->places) {
        struct place *place = capture->places;
        capture->places = place->next;
        leave(place);
        place_free(place);
    }
}

/* The graph is the caller's then, if the capture made it. */
static void finish(struct drv_capture *capture) {
    leave_all(capture);
    unlist(capture);
    capture->graph->capture = NULL;
    capture->ended = true;
    release(capture);
}

static void abandon(struct drv_capture *capture) {
    struct drv_graph *graph = capture->owns_graph ? capture->graph : NULL;
    finish(capture);
    if (graph)
        drv_graph_destroy(graph);
}

/* Rules. */

static bool goes_on(const struct drv_capture *capture) {
    return capture && !capture->ended && !capture->invalid;
}

static enum drv_result invalidate(struct drv_capture *capture, enum drv_result result) {
    if (capture->invalid && !capture->ended)
        result = DRV_CAPTURE_INVALIDATED;
    capture->invalid = true;
    return result;
}

/* The legacy stream would wait for a blocking one that captures. */
static bool is_implied(const struct drv_stream *legacy, const struct drv_stream *other) {
    return !legacy->number && other->capture && other->blocking;
}

static bool any_implied(const struct drv_stream *stream, bool break_it) {
    bool any = false;
    for (struct drv_stream *s = stream->context->streams; s; s = s->next)
        if (is_implied(stream, s)) {
            any = true;
            if (break_it)
                invalidate(s->capture, DRV_OK);
        }
    return any;
}

enum drv_result drv_capture_check_submit(struct drv_stream *stream) {
    if (stream->number || !captures)
        return DRV_OK;
    return any_implied(stream, true) ? DRV_CAPTURE_IMPLICIT : DRV_OK;
}

enum drv_result drv_capture_check_stream(struct drv_stream *stream) {
    if (stream->capture)
        return invalidate(stream->capture, DRV_CAPTURE_UNSUPPORTED);
    return drv_capture_check_submit(stream);
}

/* Whether a thread may not make unsafe calls because of a capture. */
static bool minds(const struct drv_capture *capture) {
    if (thread_mode == DRV_CAPTURE_RELAXED || capture->mode == DRV_CAPTURE_RELAXED)
        return false;
    bool mine = capture->thread == drv_thread();
    return mine || (thread_mode == DRV_CAPTURE_GLOBAL && capture->mode == DRV_CAPTURE_GLOBAL);
}

/* Of whatever context: the modes are the threads'. */
enum drv_result drv_capture_check_unsafe(struct drv_context *context) {
    (void)context;
    enum drv_result r = DRV_OK;
    for (struct drv_capture *c = captures; c; c = c->next_of_all)
        if (minds(c)) {
            invalidate(c, DRV_OK);
            r = DRV_CAPTURE_UNSUPPORTED;
        }
    return r;
}

enum drv_result drv_capture_check_context(struct drv_context *context) {
    enum drv_result r = DRV_OK;
    for (struct drv_stream *s = captures ? context->streams : NULL; s; s = s->next)
        if (s->capture) {
            invalidate(s->capture, DRV_OK);
            r = DRV_CAPTURE_UNSUPPORTED;
        }
    return r;
}

enum drv_result drv_capture_check_event(struct drv_event *event) {
    if (!event->capture)
        return DRV_OK;
    if (!event->capture->ended)
        invalidate(event->capture, DRV_OK);
    return DRV_CAPTURED_EVENT;
}

/* Not what a capture can hold: callbacks that are told of errors. */
static bool is_unsupported(const struct drv_work *work) {
    return work->kind == KREX_SIM_HOST && !work->watches && work->callback.call;
}

enum drv_result drv_capture_append(struct drv_stream *stream, struct drv_work *work) {
    struct drv_capture *capture = stream->capture;
    struct place *place = stream->captured;
    if (capture->invalid)
        return DRV_CAPTURE_INVALIDATED;
    if (is_unsupported(work))
        return invalidate(capture, DRV_CAPTURE_UNSUPPORTED);
    enum drv_node_type type = drv_node_type_of(work);
    struct drv_node *node = drv_node_add(capture->graph, type, work, place->nodes, place->count);
    place->count = 0;
    if (!node || !place_add(place, &node, 1))
        return invalidate(capture, DRV_OUT_OF_MEMORY);
    return DRV_OK;
}

/* Events. */

void drv_capture_event_forget(struct drv_event *event) {
    struct drv_capture *capture = event->capture;
    place_free(event->captured);
    event->capture = NULL;
    event->captured = NULL;
    if (capture)
        release(capture);
}

enum drv_result drv_capture_record(struct drv_stream *stream, struct drv_event *event) {
    struct drv_capture *capture = stream->capture;
    const struct place *place = stream->captured;
    if (capture->invalid)
        return DRV_CAPTURE_INVALIDATED;
    if (event->context != stream->context)
        return invalidate(capture, DRV_INVALID_HANDLE);
    struct place *copy = place_make(place->nodes, place->count);
    if (!copy)
        return DRV_OUT_OF_MEMORY;
    drv_capture_event_forget(event);
    event->capture = capture;
    event->captured = copy;
    event->pending = 0;
    capture->references++;
    return DRV_OK;
}

/* For a stream that captures: what stands against waiting for an event that is not of its capture. */
static enum drv_result refuse_wait(struct drv_capture *own, struct drv_capture *other) {
    if (own && own->invalid)
        return DRV_CAPTURE_INVALIDATED;
    enum drv_result r = own && goes_on(other)    ? DRV_CAPTURE_MERGE
                        : other && !other->ended ? DRV_CAPTURE_INVALIDATED
                                                 : DRV_CAPTURE_ISOLATION;
    if (own)
        invalidate(own, r);
    if (goes_on(other))
        invalidate(other, r);
    return r;
}

enum drv_result drv_capture_wait(struct drv_stream *stream, struct drv_event *event) {
    struct drv_capture *own = stream->capture, *other = event->capture;
    const struct place *from = event->captured;
    if (!other && !event->recorded)
        return own->invalid ? DRV_CAPTURE_INVALIDATED : DRV_OK;
    if (!goes_on(other) || (own && own != other))
        return refuse_wait(own, other);
    if (!stream->number)
        return invalidate(other, DRV_CAPTURE_IMPLICIT);
    bool done = own ? place_add(stream->captured, from->nodes, from->count)
                    : join(other, stream, from->nodes, from->count);
    return done ? DRV_OK : invalidate(other, DRV_OUT_OF_MEMORY);
}

/* Ends. */

/* What is left of it is still to be joined. */
void drv_capture_stream_gone(struct drv_stream *stream) {
    struct drv_capture *capture = stream->capture;
    if (capture->stream == stream) {
        abandon(capture);
        return;
    }
    leave(stream->captured);
}

void drv_capture_context_gone(struct drv_context *context) {
    struct drv_capture *next;
    for (struct drv_capture *c = context->captures; c; c = next) {
        next = c->next;
        abandon(c);
    }
    for (struct drv_stream *s = context->streams; s; s = s->next)
        if (s->capture) { /* in one that began in another context */
            invalidate(s->capture, DRV_OK);
            drv_capture_stream_gone(s);
        }
}

static bool is_joined(const struct drv_capture *capture) {
    const struct place *own = capture->stream->captured;
    if (!drv_graph_mark_before(capture->graph, own->nodes, own->count))
        return false;
    for (const struct place *p = capture->places; p; p = p->next)
        for (size_t i = 0; i < p->count; i++)
            if (!p->nodes[i]->mark)
                return false;
    return true;
}

static enum drv_result end(struct drv_stream *stream, struct drv_graph **graph) {
    struct drv_capture *capture = stream->capture;
    if (!capture || capture->stream != stream)
        return DRV_CAPTURE_UNMATCHED;
    if (capture->mode != DRV_CAPTURE_RELAXED && capture->thread != drv_thread())
        return DRV_CAPTURE_WRONG_THREAD;
    enum drv_result r = capture->invalid     ? DRV_CAPTURE_INVALIDATED
                        : is_joined(capture) ? DRV_OK
                                             : DRV_CAPTURE_UNJOINED;
    if (r) {
        abandon(capture);
        return r;
    }
    *graph = capture->graph;
    finish(capture);
    return DRV_OK;
}

enum drv_result drv_capture_end(struct drv_stream *stream, struct drv_graph **graph) {
    *graph = NULL;
    drv_lock();
    enum drv_result r = end(stream, graph);
    drv_unlock();
    return r;
}

/* Begins. */

static struct drv_capture *make(struct drv_stream *stream, enum drv_capture_mode mode,
                                struct drv_graph *graph) {
    struct drv_capture *c = calloc(1, sizeof *c);
    if (!c || !(c->graph = graph ? graph : drv_graph_create())) {
        free(c);
        return NULL;
    }
    c->owns_graph = !graph;
    c->graph->capture = c;
    c->context = stream->context;
    c->stream = stream;
    c->mode = mode;
    c->thread = drv_thread();
    c->id = ++last_id;
    c->references = 1;
    return c;
}

enum drv_result drv_capture_begin(struct drv_stream *stream, enum drv_capture_mode mode,
                                  struct drv_graph *graph, struct drv_node *const *needs,
                                  size_t need_count) {
    enum drv_result r = DRV_OK;
    drv_lock();
    if (!stream->number || stream->capture)
        r = DRV_CAPTURE_UNSUPPORTED;
    struct drv_capture *capture = r ? NULL : make(stream, mode, graph);
    if (!r && !capture)
        r = DRV_OUT_OF_MEMORY;
    if (!r) {
        enlist(capture);
        if (!join(capture, stream, needs, need_count)) {
            abandon(capture);
            r = DRV_OUT_OF_MEMORY;
        }
    }
    drv_unlock();
    return r;
}

/* Asks. */

enum drv_result drv_capture_query(struct drv_stream *stream, struct drv_capture_info *info) {
    *info = (struct drv_capture_info){0};
    drv_lock();
    const struct drv_capture *c = stream->capture;
    enum drv_result r = any_implied(stream, false) ? DRV_CAPTURE_IMPLICIT : DRV_OK;
    if (c && !r) {
        const struct place *place = stream->captured;
        *info = (struct drv_capture_info){DRV_CAPTURE_ACTIVE, c->id, c->graph, place->nodes,
                                          place->count};
        if (c->invalid)
            info->status = DRV_CAPTURE_INVALID;
    }
    drv_unlock();
    return r;
}

enum drv_result drv_capture_need(struct drv_stream *stream, struct drv_node *const *needs,
                                 size_t need_count, bool only) {
    drv_lock();
    struct place *place = stream->captured;
    enum drv_result r = stream->capture->invalid ? DRV_CAPTURE_INVALIDATED : DRV_OK;
    if (!r && only)
        place->count = 0;
    if (!r && !place_add(place, needs, need_count))
        r = DRV_OUT_OF_MEMORY;
    drv_unlock();
    return r;
}

enum drv_capture_mode drv_capture_exchange_mode(enum drv_capture_mode mode) {
    enum drv_capture_mode before = thread_mode;
    thread_mode = mode;
    return before;
}
