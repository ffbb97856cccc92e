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
#include "drain.h"

struct capture {
    struct capture *next;
    const struct krex_gpu *vendor;
    uint64_t token; /* the attachment that it is announced under */
    const void *stream;
    pid_t tid; /* for the vendor's per-thread stream: whose; else 0 */
    const void *context;
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

static pid_t owner(const struct krex_gpu *vendor, const void *stream) {
    return stream == vendor->per_thread_stream ? (pid_t)syscall(SYS_gettid) : 0;
}

uint64_t krex_capture_enter(void) {
    int saved = errno;
    uint64_t token = krex_long_begin();
    if (token && !krex_gpu_await_drainer())
        krex_warn("a capture begins while the driver is still asked, for somebody else's region, "
                  "whether this process's work is done: the driver may invalidate the capture");
    errno = saved;
    return token;
}

void krex_capture_begun(const struct krex_gpu *vendor, uint64_t token, const void *stream,
                        bool began) {
    int saved = errno;
    struct capture *c = token && began ? malloc(sizeof *c) : NULL;
    if (token && !began)
        krex_long_end(token);
    if (c) {
        pthread_once(&prepared, prepare);
        *c = (struct capture){.vendor = vendor,
                              .token = token,
                              .stream = stream,
                              .tid = owner(vendor, stream),
                              .context = vendor->current()};
        pthread_mutex_lock(&lock);
        c->next = captures;
        krex_store_relaxed(&captures, c);
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
}

/* Takes the first that fits off the list, and announces it no longer. False: none fits. */
static bool end_one(bool (*fits)(const struct capture *, const void *),
                    const struct krex_gpu *vendor, const void *what) {
    pthread_mutex_lock(&lock);
    struct capture **place = &captures;
    while (*place && ((*place)->vendor != vendor || !fits(*place, what)))
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
    return c->stream == stream && c->tid == owner(c->vendor, stream);
}

static bool is_in_context(const struct capture *c, const void *context) {
    return c->context == context;
}

/* An end that failed may have ended it all the same: the driver knows. */
void krex_capture_ended(const struct krex_gpu *vendor, const void *stream, bool success) {
    int saved = errno;
    if (krex_load_relaxed(&captures) && (success || !vendor->is_capturing(stream)))
        end_one(is_in_stream, vendor, stream);
    errno = saved;
}

void krex_capture_stream_destroyed(const struct krex_gpu *vendor, const void *stream) {
    int saved = errno;
    if (krex_load_relaxed(&captures))
        end_one(is_in_stream, vendor, stream);
    errno = saved;
}

void krex_captures_lost(const struct krex_gpu *vendor, const void *context) {
    while (end_one(is_in_context, vendor, context)) {
    }
}
