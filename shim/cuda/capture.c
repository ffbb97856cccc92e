/* SPDX-License-Identifier: Apache-2.0
 *
 * The open captures, by the stream that each was begun in: other streams that are drawn in end with
 * it. Each is a long heavy call (../gate.h) until we know that it has ended; the drain relies on it
 * (drain.c). Where memory runs out, one stays announced until the process ends: no region beside it is
 * exclusive, and the record says so.
 */
#include "capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../gate.h"
#include "../log.h"

struct capture {
    struct capture *next;
    uint64_t token; /* the attachment that it is announced under */
    CUstream stream;
    pid_t tid; /* for CU_STREAM_PER_THREAD: whose; else 0 */
    CUcontext context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct capture *captures;

/* A forked child: none of its parent's captures is open in it. */
static void start_over(void) {
    pthread_mutex_init(&lock, NULL);
    krex_store_relaxed(&captures, NULL);
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_over); }

static pid_t owner(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD ? (pid_t)syscall(SYS_gettid) : 0;
}

static CUcontext current(void) {
    CUresult (*get)(CUcontext *) = krex_cu_find_any("cuCtxGetCurrent");
    CUcontext context = NULL;
    return get && get(&context) == CUDA_SUCCESS ? context : NULL;
}

uint64_t krex_cu_capture_enter(void) {
    int saved = errno;
    uint64_t token = krex_long_begin();
    if (token && !krex_cu_await_drainer())
        krex_warn("a capture begins while the driver is still asked, for somebody else's region, "
                  "whether this process's work is done: the driver may invalidate the capture");
    errno = saved;
    return token;
}

void krex_cu_capture_begun(uint64_t token, CUstream stream, bool began) {
    int saved = errno;
    struct capture *c = token && began ? malloc(sizeof *c) : NULL;
    if (token && !began)
        krex_long_end(token);
    if (c) {
        pthread_once(&prepared, prepare);
        *c = (struct capture){
            .token = token, .stream = stream, .tid = owner(stream), .context = current()};
        pthread_mutex_lock(&lock);
        c->next = captures;
        krex_store_relaxed(&captures, c);
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
}

/* Takes the first that fits off the list, and announces it no longer. False: none fits. */
static bool end_one(bool (*fits)(const struct capture *, const void *), const void *what) {
    pthread_mutex_lock(&lock);
    struct capture **place = &captures;
    while (*place && !fits(*place, what))
        place = &(*place)->next;
    struct capture *c = *place;
    if (c)
        krex_store_relaxed(place, c->next);
    pthread_mutex_unlock(&lock);
    if (!c)
        return false;
    krex_long_end(c->token);
    free(c);
    return true;
}

static bool is_in_stream(const struct capture *c, const void *stream) {
    return c->stream == stream && c->tid == owner(c->stream);
}

static bool is_in_context(const struct capture *c, const void *context) {
    return c->context == context;
}

/* An end that failed may have ended it all the same: the driver knows. */
static bool still_captures(CUstream stream) {
    CUresult (*ask)(CUstream, CUstreamCaptureStatus *) = krex_cu_find_any("cuStreamIsCapturing");
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask && ask(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void krex_cu_capture_ended(CUstream stream, CUresult result) {
    int saved = errno;
    if (krex_load_relaxed(&captures) && (result == CUDA_SUCCESS || !still_captures(stream)))
        end_one(is_in_stream, stream);
    errno = saved;
}

void krex_cu_stream_destroyed(CUstream stream) {
    int saved = errno;
    if (krex_load_relaxed(&captures))
        end_one(is_in_stream, stream);
    errno = saved;
}

void krex_cu_captures_lost(CUcontext context) {
    while (end_one(is_in_context, context)) {
    }
}
