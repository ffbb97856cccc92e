/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA driver for tests, that executes nothing: the test says what is complete. It invalidates
 * captures as cuda.h says. For one program, linked with the drain alone.
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include "check.h"
#include "cuda/drain.h"
#include "log.h"
#include "stop.h"

enum {
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNJOINED = 904,
    WRONG_THREAD = 908,
    CONTEXTS = 4,
    STREAMS = 4,
    EVENTS = 16,
};

/* Handles are addresses of these. All of it under driver_lock. */
static struct fake_context {
    bool alive;
    int life;                    /* a handle may come back */
    CUresult fault;              /* sticky */
    uint64_t submitted;          /* how much work it was given; */
    uint64_t complete;           /* that much is done */
    struct fake_context *covers; /* of a primary one: its green one */
} fake_contexts[CONTEXTS];

static struct fake_event {
    struct fake_context *in;
    int life;
    uint64_t until; /* it stands for so much of the context's work */
    bool recorded;
} fake_events[EVENTS];

static struct fake_stream {
    struct fake_context *in;
    CUstreamCaptureStatus status;
    int32_t tid; /* who began to capture */
} fake_streams[STREAMS];

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static int events_made, calls;  /* so far */
static bool has_record = true;  /* cuCtxRecordEvent */
static CUresult record_says;    /* whatever it is asked */
static void (*in_record)(void); /* what other threads do meanwhile, once */
static uint32_t in_synchronize; /* a thread waits there */
static __thread struct fake_context *current;
static __thread CUstreamCaptureMode mode; /* GLOBAL, until it is exchanged */

static CUcontext context(int i) { return (CUcontext)&fake_contexts[i]; }
static CUstream stream(int i) { return (CUstream)&fake_streams[i]; }

static void locked(void) {
    pthread_mutex_lock(&driver_lock);
    calls++;
}

static CUresult unlocked(CUresult r) {
    pthread_mutex_unlock(&driver_lock);
    return r;
}

static CUresult exchange_mode(CUstreamCaptureMode *other) {
    CUstreamCaptureMode old = mode;
    locked();
    mode = *other;
    *other = old;
    return unlocked(CUDA_SUCCESS);
}

static CUresult set_current(CUcontext to) {
    struct fake_context *c = (struct fake_context *)to;
    locked();
    if (c && !c->alive)
        return unlocked(INVALID_CONTEXT);
    current = c;
    return unlocked(CUDA_SUCCESS);
}

static CUresult get_current(CUcontext *of) {
    locked();
    *of = (CUcontext)current;
    return unlocked(CUDA_SUCCESS);
}

static CUresult create_event(CUevent *event, unsigned int flags) {
    locked();
    CHECK(current && flags == 2 && events_made < EVENTS);
    struct fake_event *e = &fake_events[events_made++];
    *e = (struct fake_event){.in = current, .life = current->life};
    *event = (CUevent)e;
    return unlocked(current->fault);
}

/* True: there was one, which this call has spoiled. */
static bool spoil_captures(const struct fake_context *of) {
    bool any = false;
    for (int i = 0; i < STREAMS; i++)
        if (fake_streams[i].in == of && fake_streams[i].status) {
            fake_streams[i].status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            any = true;
        }
    return any;
}

static CUresult record_event(CUcontext in, CUevent event) {
    struct fake_context *c = (struct fake_context *)in;
    struct fake_event *e = (struct fake_event *)event;
    void (*meanwhile)(void) = in_record;
    in_record = NULL;
    if (meanwhile)
        meanwhile();
    locked();
    if (record_says)
        return unlocked(record_says);
    if (!c->alive || c->fault)
        return unlocked(c->alive ? c->fault : INVALID_CONTEXT);
    if (e->in != c || e->life != c->life)
        return unlocked(INVALID_HANDLE);
    if (spoil_captures(c))
        return unlocked(CAPTURE_UNSUPPORTED);
    e->until = c->submitted;
    e->recorded = true;
    return unlocked(CUDA_SUCCESS);
}

static bool is_complete(const struct fake_context *c, uint64_t until) {
    const struct fake_context *green = c->covers;
    return c->complete >= until && (!green || green->complete >= green->submitted);
}

static CUresult query_event(CUevent event) {
    struct fake_event *e = (struct fake_event *)event;
    locked();
    CHECK(current && e->in == current && e->recorded && mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    if (e->in->fault)
        return unlocked(e->in->fault);
    return unlocked(is_complete(e->in, e->until) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

static CUresult synchronize(void) {
    locked();
    struct fake_context *c = current;
    CHECK(c && mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    if (spoil_captures(c))
        return unlocked(CAPTURE_UNSUPPORTED);
    krex_store_release(&in_synchronize, 1);
    while (!c->fault && !is_complete(c, c->submitted)) {
        pthread_mutex_unlock(&driver_lock);
        usleep(100);
        pthread_mutex_lock(&driver_lock);
    }
    krex_store_release(&in_synchronize, 0);
    return unlocked(c->fault);
}

static CUresult is_capturing(CUstream of, CUstreamCaptureStatus *status) {
    locked();
    *status = ((struct fake_stream *)of)->status;
    return unlocked(CUDA_SUCCESS);
}

static CUresult begin_capture(CUstream of) {
    struct fake_stream *s = (struct fake_stream *)of;
    locked();
    if (s->status)
        return unlocked(CUDA_ERROR_INVALID_VALUE);
    s->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    s->tid = own_tid();
    return unlocked(CUDA_SUCCESS);
}

static CUresult end_capture(CUstream of, CUresult unless) {
    struct fake_stream *s = (struct fake_stream *)of;
    locked();
    if (s->tid != own_tid())
        return unlocked(WRONG_THREAD);
    bool spoiled = s->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    s->status = CU_STREAM_CAPTURE_STATUS_NONE;
    return unlocked(spoiled ? CAPTURE_INVALIDATED : unless);
}

void *krex_cu_find_any(const char *symbol) {
#define ENTRY(name, function)                                                                      \
    if (!strcmp(symbol, name))                                                                     \
    return (void *)(function)
    ENTRY("cuThreadExchangeStreamCaptureMode", exchange_mode);
    ENTRY("cuCtxSetCurrent", set_current);
    ENTRY("cuCtxGetCurrent", get_current);
    ENTRY("cuCtxSynchronize", synchronize);
    ENTRY("cuCtxRecordEvent", has_record ? record_event : NULL);
    ENTRY("cuEventCreate", create_event);
    ENTRY("cuEventQuery", query_event);
    ENTRY("cuStreamIsCapturing", is_capturing);
#undef ENTRY
    FAIL("no such function in this driver");
}

/* The parts of the shim that this test leaves out. */

static int warnings;
void krex_warn(const char *format, ...) {
    (void)format;
    warnings++;
}

#endif
