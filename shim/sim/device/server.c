/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "atomic.h"
#include "futex.h"
#include "heap.h"
#include "listen.h"

enum { EVENTS = 64, PORTION = 1024 };

/* What is done to one may free it. */
static void each_peer(struct server *s, void (*what)(struct peer *)) {
    for (struct link *l = s->peers.next, *next; l != &s->peers; l = next) {
        next = l->next;
        what(LISTED(l, struct peer, listed));
    }
}

/* --- what the model says ------------------------------------------------------------------- */

static void on_interval(void *owner, const struct interval *i) {
    struct server *s = owner;
    if (s->log)
        log_interval(s->log, i, krex_now_ns());
}

static void on_result(void *owner, const struct krex_sim_result *r) { channel_give(owner, r); }

static void on_answer(void *owner, uint32_t status, uint32_t context) {
    struct peer *p = owner;
    p->question.context = context;
    peer_answer(p, status);
}

static void on_gone(void *owner) {
    struct server *s = owner;
    s->something_gone = true;
}

/* --- what clients submit ------------------------------------------------------------------- */

/* The peer whose next command has the earliest stamp, or NULL. */
static struct peer *earliest(struct server *s, uint64_t *now) {
    struct peer *first = NULL;
    for (struct link *l = s->peers.next; l != &s->peers; l = l->next) {
        struct peer *p = LISTED(l, struct peer, listed);
        if (p->client && channel_take(p, now) &&
            (!first || p->next.arrival_ns < first->next.arrival_ns))
            first = p;
    }
    return first;
}

static void take_next(struct peer *p) {
    p->has_next = false;
    if (!engine_submit(p->client, &p->next))
        peer_cut(p, "a command of no proper kind or number, or more than its launch queue holds");
}

uint64_t server_take_all(struct server *s) {
    uint64_t now = krex_now_ns();
    struct peer *p;
    for (int n = 1; (p = earliest(s, &now)); n++) {
        take_next(p);
        if (n % PORTION == 0)
            each_peer(s, channel_wake);
    }
    engine_run(s->engine, now);
    return now;
}

/* --- sources ------------------------------------------------------------------------------- */

void server_watch(struct server *s, int fd, struct source *source, uint32_t events) {
    struct epoll_event e = {.events = events, .data.ptr = source};
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &e) && errno == ENOENT &&
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e))
        (void)fprintf(stderr, "krex-sim-device: cannot watch a descriptor: %s\n", strerror(errno));
}

static void accept_all(struct source *source, uint32_t events) {
    struct server *s = LISTED(source, struct server, listener);
    int fd;
    (void)events;
    while ((fd = accept4(s->listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        list_append(&s->peers, &peer_new(s, fd)->listed);
        s->alone_since = NEVER;
    }
}

static void timer_fired(struct source *source, uint32_t events) {
    struct server *s = LISTED(source, struct server, timer);
    uint64_t count;
    (void)events;
    (void)!read(s->timer_fd, &count, sizeof count);
    s->armed = NEVER;
}

static void signalled(struct source *source, uint32_t events) {
    struct server *s = LISTED(source, struct server, signal);
    (void)events;
    s->stopped = true;
}

static void parent_ended(struct source *source, uint32_t events) {
    struct server *s = LISTED(source, struct server, parent);
    (void)events;
    close(s->parent_fd);
    s->parent_fd = -1;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void bury_dead(struct peer *p) {
    if (!p->dead)
        return;
    if (p->server->log)
        log_left(p->server->log);
    peer_free(p);
}

static void bury(struct server *s) {
    each_peer(s, bury_dead);
    if (list_empty(&s->peers) && s->alone_since == NEVER)
        s->alone_since = krex_now_ns();
}

static void answer_gone(struct server *s) {
    if (!s->something_gone)
        return;
    s->something_gone = false;
    each_peer(s, peer_look_for_gone);
}

/* When to leave if nobody comes; NEVER: there are clients, or is a parent. */
static uint64_t leave_at(const struct server *s) {
    if (s->alone_since == NEVER || s->parent_fd >= 0 || engine_next(s->engine) != NEVER)
        return NEVER;
    return s->alone_since + s->linger_ns;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void set_timer(struct server *s) {
    uint64_t at = least(engine_next(s->engine), leave_at(s));
    if (s->log)
        at = least(at, log_due(s->log));
    if (at == s->armed)
        return;
    s->armed = at;
    struct itimerspec when = {0}; /* NEVER: not at all */
    if (at != NEVER) {
        when.it_value.tv_sec = (time_t)(at / 1000000000u);
        when.it_value.tv_nsec = (long)(at % 1000000000u) + !at;
    }
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void fall_asleep(struct peer *p) { channel_sleep(p, true); }

static void wake_up(struct peer *p) { channel_sleep(p, false); }

static bool all_empty(const struct server *s) {
    for (struct link *l = s->peers.next; l != &s->peers; l = l->next)
        if (!channel_is_empty(LISTED(l, struct peer, listed)))
            return false;
    return true;
}

static void sleep_until_something(struct server *s) {
    struct epoll_event events[EVENTS];
    each_peer(s, fall_asleep);
    krex_full_fence(); /* pairs with the client's, between its submitted and its look at asleep */
    int n = all_empty(s) ? epoll_wait(s->epoll_fd, events, EVENTS, -1) : 0;
    each_peer(s, wake_up);
    for (int i = 0; i < n; i++) {
        struct source *source = events[i].data.ptr;
        source->ready(source, events[i].events);
    }
}

static void keep_log(struct server *s, uint64_t now) {
    if (s->log && log_due(s->log) <= now)
        log_flush(s->log, engine_is_idle(s->engine) ? now : 0);
}

static void loop(struct server *s) {
    while (!s->stopped) {
        uint64_t now = server_take_all(s);
        answer_gone(s);
        each_peer(s, channel_wake);
        bury(s);
        keep_log(s, now);
        if (leave_at(s) <= now)
            break;
        set_timer(s);
        sleep_until_something(s);
    }
}

/* --- start and end ------------------------------------------------------------------------- */

static int watch_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void watch_all(struct server *s) {
    s->listener.ready = accept_all;
    s->timer.ready = timer_fired;
    s->signal.ready = signalled;
    s->parent.ready = parent_ended;
    server_watch(s, s->listener_fd, &s->listener, EPOLLIN);
    server_watch(s, s->timer_fd, &s->timer, EPOLLIN);
    server_watch(s, s->signal_fd, &s->signal, EPOLLIN);
    if (s->parent_fd >= 0)
        server_watch(s, s->parent_fd, &s->parent, EPOLLRDHUP);
}

static bool complain(const char *what, const char *why) {
    (void)fprintf(stderr, "krex-sim-device: %s: %s\n", what, why);
    return false;
}

static bool have_model(struct model *m, const char *path) {
    char why[512];
    model_default(m);
    return !path || model_read(m, path, why, sizeof why) || complain("wrong model", why);
}

static bool begin(struct server *s, const struct options *o) {
    struct engine_events events = {s, on_interval, on_result, on_answer, on_gone};
    s->engine = engine_new(&s->model, s->devices, o->seed, &events);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->signal_fd = watch_signals();
    if (s->epoll_fd < 0 || s->timer_fd < 0 || s->signal_fd < 0)
        return complain("cannot start", strerror(errno));
    if (o->log && !(s->log = log_open(o->log)))
        return complain(o->log, strerror(errno));
    s->listener_fd = listen_at(o->socket);
    if (s->listener_fd < 0)
        return false;
    watch_all(s);
    return true;
}

/* The clients see a lost device; the log says what was still running, and that it is complete. */
static void finish(struct server *s) {
    uint64_t now = server_take_all(s);
    each_peer(s, channel_lose);
    if (!s->log)
        return;
    engine_report_running(s->engine, now);
    log_flush(s->log, now);
    log_close(s->log);
    s->log = NULL;
}

static void cut(struct peer *p) { peer_cut(p, NULL); }

/* So that what is still allocated is a leak. */
static void free_all(struct server *s) {
    each_peer(s, cut);
    each_peer(s, bury_dead);
    engine_run(s->engine, NEVER - 1);
    engine_free(s->engine);
    model_free(&s->model);
}

int server_run(const struct options *o) {
    struct server s = {.devices = o->devices,
                       .linger_ns = o->linger_ns,
                       .parent_fd = o->parent_fd,
                       .alone_since = krex_now_ns(),
                       .armed = NEVER};
    prctl(PR_SET_NAME, "krex-sim-device");
    link_init(&s.peers);
    if (!have_model(&s.model, o->model) || !begin(&s, o))
        return 1;
    loop(&s);
    listen_end(s.listener_fd, o->socket);
    finish(&s);
    free_all(&s);
    return 0;
}
