/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures. What a drain asks of a driver may invalidate every capture that is open there. So nothing
 * is asked while one is open, nor while one is begun, and none is begun in the middle:
 *
 *   begin of a capture (a thread)             a question (the drainer)
 *   -----------------------------             ------------------------
 *   overflow_heavy + 1, passes the gate       in_driver = 1
 *   until in_driver is 0: wait                full fence
 *   the driver                                overflow_heavy above 0: not now
 *                                             the driver
 *                                             in_driver = 0
 *
 * Each side stores first and then looks at what the other has stored, with a full fence in between (a
 * locked add is one): so at least one of the two sees the other. The gates alone would not do: a
 * request may be withdrawn, and the gates opened, while the drainer is in the driver. A process that
 * submits with the pass is drained too when it leaves, and then its capture may be open: it is not
 * drained as long as that lasts.
 *
 * Never reported as drained, so that the deadline passes and the region says so: a process that is
 * exiting, one with work in a context that we cannot find out, and work that waits for this process's
 * own host.
 */
#include "drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "../futex.h"
#include "../gate.h"
#include "capture.h"

/* A driver call of the drainer's takes this long where work is lost, or a kernel waits for us. */
#define AWAIT_NS UINT64_C(5000000000)
#define AWAIT_AT_EXIT_NS UINT64_C(1000000000)

/* Held for a moment, and never in a call to the driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct krex_gpu_context *contexts;
static bool unknown_work;  /* work was submitted to a context that is not on the list */
static bool exiting;       /* the driver may be torn down any moment */
static uint32_t in_driver; /* the drainer is; a futex */
uint32_t krex_gpu_inside;

/* A forked child: the contexts are its parent's, and so may have been the lock. */
static void start_over(void) {
    pthread_mutex_init(&lock, NULL);
    contexts = NULL; /* not freed: a thread of the parent may have been in the middle of the list */
    unknown_work = false;
    in_driver = 0;
    krex_gpu_inside = 0;
}

/* The drainer is in the driver no longer, or it takes too long. */
static bool await_drainer(uint64_t limit_ns) {
    uint64_t end = krex_now_ns() + limit_ns;
    while (krex_load_acquire(&in_driver)) { /* pairs with leave_driver */
        if (krex_now_ns() > end)
            return false;
        krex_futex_wait(&in_driver, 1, UINT64_C(100000000));
    }
    return true;
}

static void stop(void) {
    krex_exiting = 1;
    pthread_mutex_lock(&lock);
    exiting = true;
    pthread_mutex_unlock(&lock);
    await_drainer(AWAIT_AT_EXIT_NS);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, start_over);
    atexit(stop);
}

bool krex_gpu_await_drainer(void) {
    krex_full_fence(); /* pairs with enter_driver */
    return await_drainer(AWAIT_NS);
}

/* The contexts. */

static struct krex_gpu_context **find(const struct krex_gpu *vendor, const void *handle) {
    struct krex_gpu_context **c = &contexts;
    while (*c && ((*c)->handle != handle || (*c)->vendor != vendor || (*c)->gone))
        c = &(*c)->next;
    return c;
}

/* Under the lock. NULL: no memory. */
static struct krex_gpu_context *listed(const struct krex_gpu *vendor, void *handle) {
    struct krex_gpu_context *c = *find(vendor, handle);
    if (c)
        return c;
    c = malloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct krex_gpu_context){
        .next = contexts, .vendor = vendor, .handle = handle, .primary_of = KREX_GPU_NO_PRIMARY};
    return contexts = c;
}

void krex_gpu_context_made(const struct krex_gpu *vendor, void *handle, int primary_of) {
    int saved = errno;
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    struct krex_gpu_context *c = handle ? listed(vendor, handle) : NULL;
    if (!c)
        unknown_work = true;
    else
        c->again = c->ending;
    if (c && primary_of != KREX_GPU_NO_PRIMARY)
        c->primary_of = primary_of;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void *krex_gpu_primary_of(const struct krex_gpu *vendor, int device) {
    void *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct krex_gpu_context *c = contexts; c && !found; c = c->next)
        if (c->vendor == vendor && c->primary_of == device && !c->gone)
            found = c->handle;
    pthread_mutex_unlock(&lock);
    return found;
}

void krex_gpu_context_ending(const struct krex_gpu *vendor, void *handle) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct krex_gpu_context *c = *find(vendor, handle);
    if (c)
        c->ending++;
    pthread_mutex_unlock(&lock);
    if (c)
        await_drainer(AWAIT_NS);
    errno = saved;
}

/* Under the lock. */
static void unlist(struct krex_gpu_context **place) {
    struct krex_gpu_context *c = *place;
    c->gone = true;
    if (in_driver) /* maybe for this one: free_gone comes later */
        return;
    *place = c->next;
    free(c);
}

/* Under the lock, after a call that may have destroyed it. Our event went with it. */
static void end(struct krex_gpu_context **place, bool destroyed) {
    struct krex_gpu_context *c = *place;
    bool again = c->again;
    c->ending -= c->ending > 0;
    c->again = again && c->ending;
    if (destroyed && !again)
        unlist(place);
    if (destroyed && again && !in_driver) {
        c->event = NULL;
        c->state = KREX_GPU_ASKED;
    }
}

void krex_gpu_context_ended(const struct krex_gpu *vendor, void *handle, bool gone) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct krex_gpu_context **place = find(vendor, handle);
    if (*place)
        end(place, gone);
    pthread_mutex_unlock(&lock);
    if (handle && gone)
        krex_captures_lost(vendor, handle);
    errno = saved;
}

/* The drain. */

/* False: a capture is open, or is begun. What else is in that counter is so for a moment. */
static bool enter_driver(void) {
    krex_store_relaxed(&in_driver, 1);
    krex_full_fence();
    return !krex_load_acquire(&krex_process.block->overflow_heavy);
}

static void leave_driver(void) {
    krex_store_release(&in_driver, 0); /* pairs with await_drainer */
    krex_futex_wake_all(&in_driver);
}

/* Under the lock, but for the time in the driver: meanwhile the list may grow, and nothing is freed. */
static void step(struct krex_gpu_context *c, bool may_wait) {
    enum krex_gpu_state state = c->state;
    if (exiting || c->ending || state >= KREX_GPU_DRAINED)
        return;
    if (enter_driver()) {
        pthread_mutex_unlock(&lock);
        if (c->vendor->prepare())
            state = c->vendor->visit(c, may_wait);
        pthread_mutex_lock(&lock);
        c->state = state;
    }
    leave_driver();
}

/* Under the lock. */
static void free_gone(void) {
    for (struct krex_gpu_context **place = &contexts; *place;)
        if ((*place)->gone)
            unlist(place);
        else
            place = &(*place)->next;
}

/* A look of its own: the list may have grown while the lock was given up. */
static bool all_drained(const struct krex_gpu *vendor) {
    bool all = true;
    for (const struct krex_gpu_context *c = contexts; c; c = c->next)
        all = all && (c->vendor != vendor || c->state == KREX_GPU_DRAINED);
    return all;
}

/* Under the lock. */
static void step_all(const struct krex_gpu *vendor, bool may_wait) {
    for (struct krex_gpu_context *c = contexts; c; c = c->next)
        if (c->vendor == vendor)
            step(c, may_wait);
    free_gone();
}

void krex_gpu_drain_begin(const struct krex_gpu *vendor) {
    pthread_mutex_lock(&lock);
    for (struct krex_gpu_context *c = contexts; c; c = c->next)
        if (c->vendor == vendor)
            c->state = KREX_GPU_ASKED;
    step_all(vendor, false);
    pthread_mutex_unlock(&lock);
}

bool krex_gpu_drain_done(const struct krex_gpu *vendor) {
    pthread_mutex_lock(&lock);
    step_all(vendor, !vendor->asks_only);
    bool done = all_drained(vendor) && !unknown_work && !exiting;
    pthread_mutex_unlock(&lock);
    return done;
}

void krex_gpu_drain_reset(struct krex_gpu *vendor, bool asks_only) {
    vendor->begun = false;
    vendor->asks_only = asks_only;
}

bool krex_gpu_drain_advance(struct krex_gpu *vendor) {
    /* Acquire: pairs with the call's end. What it submitted is there for the drain to find. */
    if (!vendor->begun && krex_load_acquire(&krex_gpu_inside))
        return false;
    if (!vendor->begun)
        krex_gpu_drain_begin(vendor);
    vendor->begun = true;
    return krex_gpu_drain_done(vendor);
}
