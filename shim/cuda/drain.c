/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains this process's contexts: an event in each, for all that was submitted to it, polled. Drivers
 * before 12.5 have no such event: there the drainer waits in the driver, context by context. Where a
 * request is withdrawn meanwhile, it comes back when the work is done and then looks for the next one,
 * which may have missed its deadline by then, but is not lost.
 *
 * Captures. Such an event, or such a wait, invalidates every capture in its context. So none is made
 * while one is open, nor while one is begun, and none is begun in the middle:
 *
 *   begin of a capture (a thread)             an event (the drainer)
 *   -----------------------------             ----------------------
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
 * A context whose work failed is dead and has nothing outstanding: it counts as drained. Never reported
 * as drained, so that the deadline passes and the region says so: a process that is exiting, one with
 * work in a context that we cannot find out, and work that waits for this process's own host.
 */
#include "drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "../futex.h"
#include "../gate.h"
#include "../log.h"
#include "capture.h"

enum {
    INVALID_CONTEXT = 201,
    ECC_UNCORRECTABLE = 214,
    NVLINK_UNCORRECTABLE = 220,
    CONTAINED = 226,
    INVALID_HANDLE = 400,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_TIMEOUT = 702,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    HARDWARE_STACK_ERROR = 714,
    LAUNCH_FAILED = 719,
    TENSOR_MEMORY_LEAK = 721,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    EXTERNAL_DEVICE = 911,
    EVENT_DISABLE_TIMING = 2,
};

/* A driver call of the drainer's takes this long where work is lost, or a kernel waits for us. */
#define AWAIT_NS UINT64_C(5000000000)
#define AWAIT_AT_EXIT_NS UINT64_C(1000000000)

/* REFUSED: there is a capture that we have not seen; asking again would invalidate the next one. */
enum state { ASKED, UNDER_EVENT, DRAINED, REFUSED };

struct context {
    struct context *next;
    CUcontext handle;
    CUdevice primary_of;
    CUevent event; /* ours, in that context; only the drainer's */
    enum state state;
    uint32_t ending; /* how many calls are under way that may destroy it */
    bool again;      /* meanwhile it was told again: maybe of its successor, with the same handle */
    bool gone;       /* it is destroyed, but the drainer is in the driver for it */
};

static struct {
    CUresult (*exchange_mode)(CUstreamCaptureMode *);
    CUresult (*set_current)(CUcontext);
    CUresult (*synchronize)(void);
    CUresult (*record)(CUcontext, CUevent); /* NULL: the driver cannot */
    CUresult (*create)(CUevent *, unsigned int);
    CUresult (*query)(CUevent);
} driver;

/* Held for a moment, and never in a call to the driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static struct context *contexts;
static bool unknown_work;  /* work was submitted to a context that is not on the list */
static bool exiting;       /* the driver may be torn down any moment */
static uint32_t in_driver; /* the drainer is; a futex */
uint32_t krex_cu_inside;
static __thread bool relaxed; /* of the drainer: its capture mode, and `driver` is filled */

/* A forked child: the contexts are its parent's, and so may have been the lock. */
static void start_over(void) {
    pthread_mutex_init(&lock, NULL);
    contexts = NULL; /* not freed: a thread of the parent may have been in the middle of the list */
    unknown_work = false;
    in_driver = 0;
    krex_cu_inside = 0;
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

bool krex_cu_await_drainer(void) {
    krex_full_fence(); /* pairs with enter_driver */
    return await_drainer(AWAIT_NS);
}

/* The contexts. */

static struct context **find(CUcontext handle) {
    struct context **c = &contexts;
    while (*c && ((*c)->handle != handle || (*c)->gone))
        c = &(*c)->next;
    return c;
}

/* Under the lock. NULL: no memory. */
static struct context *listed(CUcontext handle) {
    struct context *c = *find(handle);
    if (c)
        return c;
    c = malloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct context){.next = contexts, .handle = handle, .primary_of = KREX_CU_NO_PRIMARY};
    return contexts = c;
}

void krex_cu_context_made(CUcontext context, CUdevice primary_of) {
    int saved = errno;
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    struct context *c = context ? listed(context) : NULL;
    if (!c)
        unknown_work = true;
    else
        c->again = c->ending;
    if (c && primary_of != KREX_CU_NO_PRIMARY)
        c->primary_of = primary_of;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

CUcontext krex_cu_primary_of(CUdevice device) {
    CUcontext found = NULL;
    pthread_mutex_lock(&lock);
    for (struct context *c = contexts; c && !found; c = c->next)
        if (c->primary_of == device && !c->gone)
            found = c->handle;
    pthread_mutex_unlock(&lock);
    return found;
}

void krex_cu_context_ending(CUcontext context) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct context *c = *find(context);
    if (c)
        c->ending++;
    pthread_mutex_unlock(&lock);
    if (c)
        await_drainer(AWAIT_NS);
    errno = saved;
}

/* Under the lock. */
static void unlist(struct context **place) {
    struct context *c = *place;
    c->gone = true;
    if (in_driver) /* maybe for this one: free_gone comes later */
        return;
    *place = c->next;
    free(c);
}

/* Under the lock, after a call that may have destroyed it. Our event went with it. */
static void end(struct context **place, bool destroyed) {
    struct context *c = *place;
    bool again = c->again;
    c->ending -= c->ending > 0;
    c->again = again && c->ending;
    if (destroyed && !again)
        unlist(place);
    if (destroyed && again && !in_driver) {
        c->event = NULL;
        c->state = ASKED;
    }
}

void krex_cu_context_ended(CUcontext context, bool gone) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct context **place = find(context);
    if (*place)
        end(place, gone);
    pthread_mutex_unlock(&lock);
    if (context && gone)
        krex_cu_captures_lost(context);
    errno = saved;
}

/* The driver. */

static bool fill_driver(void) {
    driver.exchange_mode = krex_cu_find_any("cuThreadExchangeStreamCaptureMode");
    driver.set_current = krex_cu_find_any("cuCtxSetCurrent");
    driver.synchronize = krex_cu_find_any("cuCtxSynchronize");
    driver.record = krex_cu_find_any("cuCtxRecordEvent");
    driver.create = krex_cu_find_any("cuEventCreate");
    driver.query = krex_cu_find_any("cuEventQuery");
    return driver.exchange_mode && driver.set_current && driver.synchronize && driver.create &&
           driver.query;
}

/* Else a capture of a thread's that no hook has seen might forbid the drainer to ask for an event. */
static bool be_relaxed(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!relaxed)
        relaxed = fill_driver() && driver.exchange_mode(&mode) == CUDA_SUCCESS;
    return relaxed;
}

/* The context ended by a fault, or is gone: either way nothing of it is on the device any more. */
static bool is_dead(CUresult r) {
    switch (r) {
    case INVALID_CONTEXT:
    case ECC_UNCORRECTABLE:
    case NVLINK_UNCORRECTABLE:
    case CONTAINED:
    case ILLEGAL_ADDRESS:
    case LAUNCH_TIMEOUT:
    case CONTEXT_IS_DESTROYED:
    case ASSERT:
    case TENSOR_MEMORY_LEAK:
    case EXTERNAL_DEVICE:
        return true;
    default:
        return r >= HARDWARE_STACK_ERROR && r <= LAUNCH_FAILED;
    }
}

static bool is_refusal(CUresult r) {
    return r >= STREAM_CAPTURE_UNSUPPORTED && r <= STREAM_CAPTURE_WRONG_THREAD;
}

static CUresult record(struct context *c) {
    bool old = c->event;
    CUresult r = old ? CUDA_SUCCESS : driver.create(&c->event, EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
        r = driver.record(c->handle, c->event);
    if (r == INVALID_HANDLE && old) /* a context with this handle has ended, and nobody told us */
        c->event = NULL;
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        driver.record = NULL;
    return r;
}

/* With the context current in the drainer. */
static CUresult advance(struct context *c, enum state *state, bool may_wait) {
    CUresult r = CUDA_ERROR_NOT_READY;
    if (*state == ASKED && driver.record) {
        r = record(c);
        if (r == CUDA_SUCCESS)
            *state = UNDER_EVENT;
        else if (driver.record)
            return r;
    }
    if (*state == UNDER_EVENT)
        r = driver.query(c->event);
    else if (may_wait)
        r = driver.synchronize();
    if (r == CUDA_SUCCESS)
        *state = DRAINED;
    return r;
}

static enum state visit(struct context *c, bool may_wait) {
    enum state state = c->state;
    CUresult r = driver.set_current(c->handle);
    if (r == CUDA_SUCCESS)
        r = advance(c, &state, may_wait);
    driver.set_current(NULL);
    return is_dead(r) ? DRAINED : is_refusal(r) ? REFUSED : state;
}

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
static void step(struct context *c, bool may_wait) {
    enum state state = c->state;
    if (exiting || c->ending || state >= DRAINED)
        return;
    if (enter_driver()) {
        pthread_mutex_unlock(&lock);
        if (be_relaxed())
            state = visit(c, may_wait);
        pthread_mutex_lock(&lock);
        c->state = state;
    }
    leave_driver();
}

/* Under the lock. */
static void free_gone(void) {
    for (struct context **place = &contexts; *place;)
        if ((*place)->gone)
            unlist(place);
        else
            place = &(*place)->next;
}

/* A look of its own: the list may have grown while the lock was given up. */
static bool all_drained(void) {
    bool all = true;
    for (const struct context *c = contexts; c; c = c->next)
        all = all && c->state == DRAINED;
    return all;
}

/* Under the lock. */
static void step_all(bool may_wait) {
    for (struct context *c = contexts; c; c = c->next)
        step(c, may_wait);
    free_gone();
}

void krex_cu_drain_begin(void) {
    pthread_mutex_lock(&lock);
    for (struct context *c = contexts; c; c = c->next)
        c->state = ASKED;
    step_all(false);
    pthread_mutex_unlock(&lock);
}

bool krex_cu_drain_done(void) {
    pthread_mutex_lock(&lock);
    step_all(true);
    bool done = all_drained() && !unknown_work && !exiting;
    pthread_mutex_unlock(&lock);
    return done;
}

/* The events stay, for the next one. */
void krex_cu_drain_end(void) {}
