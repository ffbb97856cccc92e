/* SPDX-License-Identifier: Apache-2.0
 *
 * Three threads. The worker takes results and ends commands. Two helpers deal with what has its turn:
 * the caller runs the program's callbacks, which may take any time; the watcher looks at words in the
 * program's memory, and hears when the process of the devices hangs up. None takes the program's
 * signals. They live as long as the process; in a forked child they are not.
 */
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "atomic.h"
#include "channel.h"
#include "futex.h"

#define LOOK_FIRST_NS 20000 /* between two looks at a word: doubled each time that nothing was up */
#define LOOK_LAST_NS 1000000
#define LONG_NS (3600 * UINT64_C(1000000000))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change; /* a command ended, or all did */
static unsigned waiters;

void drv_lock(void) { pthread_mutex_lock(&lock); }

void drv_unlock(void) { pthread_mutex_unlock(&lock); }

void drv_wait_change(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec++;
    waiters++;
    pthread_cond_timedwait(&change, &lock, &t);
    waiters--;
}

static void changed(void) {
    if (waiters)
        pthread_cond_broadcast(&change);
}

/* A helper's list, in the order in which the turns came. */
struct turns {
    struct drv_command *first, **end;
};
static struct turns calls = {NULL, &calls.first}, watches = {NULL, &watches.first};
static pthread_cond_t call_added = PTHREAD_COND_INITIALIZER;
static int watch_added = -1;

static struct turns *turns_of(const struct drv_command *c) {
    return c->work.watches ? &watches : &calls;
}

static void turn_remove(struct turns *turns, struct drv_command *c) {
    struct drv_command **place = &turns->first;
    while (*place != c)
        place = &(*place)->turn_next;
    *place = c->turn_next;
    if (turns->end == &c->turn_next)
        turns->end = place;
    c->waiting = false;
    drv_command_release(c);
}

static void turn_add(struct drv_command *c) {
    struct turns *turns = turns_of(c);
    uint64_t one = 1;
    c->turn_next = NULL;
    *turns->end = c;
    turns->end = &c->turn_next;
    c->waiting = true;
    c->references++;
    if (turns == &calls)
        pthread_cond_signal(&call_added);
    else if (write(watch_added, &one, sizeof one) < 0)
        drv_lose();
}

/* Locked. Its context is torn down, or the device lost, and nobody waits for its word any more. */
static void turn_forget(struct drv_command *c) {
    if (c->waiting)
        turn_remove(turns_of(c), c);
}

/* Does what it is the turn of; with the lock let go meanwhile. True: it was done, and said so. */
static bool turn_take(struct turns *turns, struct drv_command *c) {
    c->references++;
    drv_unlock();
    bool done = c->work.turn(&c->work);
    drv_lock();
    uint64_t seq = c->seq;
    bool told = done && c->waiting;
    if (told)
        turn_remove(turns, c);
    drv_command_release(c);
    if (told) {
        drv_unlock();
        drv_submit_done(seq);
        drv_lock();
    }
    return told;
}

static void *caller(void *unused) {
    (void)unused;
    drv_lock();
    for (;;) {
        while (!calls.first)
            pthread_cond_wait(&call_added, &lock);
        turn_take(&calls, calls.first);
    }
    return NULL;
}

/* Until there is something new to watch, or the time has come to look again. */
static void watch_sleep(uint64_t ns) {
    struct timespec t = {0, (long)ns};
    uint64_t count;
    struct pollfd p[] = {{watch_added, POLLIN, 0}, {drv_connection(), 0, 0}};
    nfds_t n = drv_lost() ? 1 : 2; /* a hang-up stays up */
    if (ppoll(p, n, ns ? &t : NULL, NULL) <= 0)
        return;
    if (p[0].revents && read(watch_added, &count, sizeof count) < 0 && errno != EAGAIN)
        drv_lose();
    if (n == 2 && p[1].revents)
        drv_lose();
}

/* Locked. A look at every word; true if one was as it should be. */
static bool look(void) {
    bool any = false;
    struct drv_command *next;
    for (struct drv_command *c = watches.first; c; c = next) {
        c->references++; /* so that its place in the list is known after the look */
        any = turn_take(&watches, c) || any;
        next = any ? NULL : c->turn_next;
        if (!c->waiting)
            next = NULL; /* the list has changed: the next round begins in front */
        drv_command_release(c);
    }
    return any;
}

static void *watcher(void *unused) {
    (void)unused;
    uint64_t pause_ns = LOOK_FIRST_NS;
    for (;;) {
        drv_lock();
        bool any = watches.first != NULL;
        if (any)
            pause_ns = look() ? LOOK_FIRST_NS : pause_ns * 2;
        drv_unlock();
        if (pause_ns > LOOK_LAST_NS)
            pause_ns = LOOK_LAST_NS;
        watch_sleep(any ? pause_ns : 0);
    }
    return NULL;
}

static bool is_fault(enum drv_result r) {
    return r == DRV_ILLEGAL_ADDRESS || r == DRV_LAUNCH_TIMEOUT || r == DRV_LAUNCH_FAILED;
}

/* Ends a command; its effect has been. */
static void end(struct drv_command *c, enum drv_result r, uint64_t end_ns) {
    struct drv_event *event = c->work.event;
    if (is_fault(r) && drv_vendor.faults_abort) {
        fprintf(stderr,
                "krex-sim: %s faulted on the device; this vendor's driver ends the program\n",
                c->work.kind == KREX_SIM_RUN ? c->work.launch.function->name : "a command");
        abort();
    }
    if (r && !c->stream->context->error)
        c->stream->context->error = r;
    if (event && event->pending == c->seq) {
        event->pending = 0;
        event->end_ns = end_ns;
    }
    turn_forget(c);
    drv_command_unlist(c);
    changed();
}

static void complete(const struct krex_sim_result *result) {
    drv_lock();
    struct drv_command *c = drv_command_find(result->seq);
    if (c && result->what == KREX_SIM_YOUR_TURN) {
        turn_add(c);
    } else if (c) {
        enum drv_result r = drv_status(result->status);
        drv_unlock();
        if (!r && c->work.effect)
            r = c->work.effect(&c->work);
        drv_lock();
        end(c, r, result->end_ns);
    }
    drv_unlock();
}

static void end_all(void) {
    drv_lock();
    for (struct drv_command *c = drv_command_any(); c; c = drv_command_any())
        end(c, DRV_LOST, 0);
    drv_unlock();
}

static void *worker(void *unused) {
    (void)unused;
    struct krex_sim_channel *channel = drv_channel();
    uint64_t consumed = 0;
    for (;;) {
        uint64_t given = krex_load_acquire(&channel->given);
        for (; consumed != given; consumed++)
            complete(&channel->result[consumed % KREX_SIM_RESULTS]);
        if (drv_lost())
            break;
        krex_futex_wait(&channel->given, (uint32_t)given, LONG_NS);
    }
    end_all(); /* under the lock, under which nothing is published any more */
    return NULL;
}

static bool start(void *(*run)(void *)) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

enum drv_result drv_workers_start(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    watch_added = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool started = watch_added >= 0 && start(worker) && start(caller) && start(watcher);
    return started ? DRV_OK : DRV_SYSTEM;
}
