/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams that the program has made, for the drain to ask about one by one. One that is made past
 * the hooks, or for which there was no memory, is not here: the drain waits for that otherwise.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "drain.h"

struct stream {
    struct stream *next;
    hipStream_t handle;
    bool asked; /* in this round of the drainer's */
};

/* Held for a moment, and never in a call to the runtime. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct stream *streams;

/* A forked child: the streams are its parent's, and so may have been the lock. */
static void start_over(void) {
    pthread_mutex_init(&lock, NULL);
    streams = NULL;
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_over); }

void krex_hip_stream_made(hipStream_t handle) {
    int saved = errno;
    struct stream *s = malloc(sizeof *s);
    if (s) {
        pthread_once(&prepared, prepare);
        pthread_mutex_lock(&lock);
        *s = (struct stream){.next = streams, .handle = handle};
        streams = s;
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
}

/* It is off the list first: the drainer, once it is out of the runtime, does not find it again. */
bool krex_hip_stream_ending(hipStream_t handle) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct stream **place = &streams;
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    struct stream *s = *place;
    if (s)
        *place = s->next;
    pthread_mutex_unlock(&lock);
    free(s);
    if (s)
        krex_gpu_await_drainer();
    errno = saved;
    return s;
}

void krex_hip_streams_forgotten(void) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct stream *all = streams;
    streams = NULL;
    pthread_mutex_unlock(&lock);
    for (struct stream *next; all; all = next) {
        next = all->next;
        free(all);
    }
    errno = saved;
}

static void ask_anew(void) {
    pthread_mutex_lock(&lock);
    for (struct stream *s = streams; s; s = s->next)
        s->asked = false;
    pthread_mutex_unlock(&lock);
}

/* One that has not been asked about. The list may change between two: so it is looked through again. */
static bool next(hipStream_t *handle) {
    pthread_mutex_lock(&lock);
    struct stream *s = streams;
    while (s && s->asked)
        s = s->next;
    if (s) {
        s->asked = true;
        *handle = s->handle;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* An error is no work: its stream is gone, or the drain hears of it by the call for the device. */
bool krex_hip_streams_done(hipError_t (*query)(hipStream_t)) {
    hipStream_t handle;
    ask_anew();
    while (next(&handle))
        if (query(handle) == hipErrorNotReady)
            return false;
    return true;
}
