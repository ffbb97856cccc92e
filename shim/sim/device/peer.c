/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "futex.h"
#include "grow.h"
#include "server.h"

void peer_cut(struct peer *p, const char *why) {
    if (p->dead)
        return;
    if (why)
        (void)fprintf(stderr, "krex-sim-device: process %d is cut off: %s\n", p->pid, why);
    p->dead = true;
    if (p->client)
        engine_client_gone(p->client, krex_now_ns());
    p->client = NULL;
    close(p->socket_fd);
    if (p->bell_fd >= 0)
        close(p->bell_fd);
    if (p->process_fd >= 0)
        close(p->process_fd);
}

void peer_free(struct peer *p) {
    channel_close(p);
    link_drop(&p->listed);
    free(p);
}

/* Two descriptors may go along with an answer. */
union attachment {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static void reply(struct peer *p, uint32_t status, const int *fds) {
    union attachment control = {.header = {.cmsg_len = CMSG_LEN(2 * sizeof *fds),
                                           .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {&p->question, sizeof p->question};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
    if (fds) {
        memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof *fds);
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
    }
    p->waits = false;
    p->question.status = status;
    server_watch(p->server, p->socket_fd, &p->socket, EPOLLIN);
    /* Who does not read is cut off, but not here: the model may be in the middle of something. Our own
     * hang-up comes back as an event. */
    if (sendmsg(p->socket_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof p->question)
        shutdown(p->socket_fd, SHUT_RDWR);
}

void peer_answer(struct peer *p, uint32_t status) {
    if (!p->dead)
        reply(p, status, NULL);
}

void peer_look_for_gone(struct peer *p) {
    if (p->waits && !p->dead && p->question.op == KREX_SIM_GONE &&
        !engine_has(p->server->engine, (int)p->question.value))
        peer_answer(p, KREX_SIM_OK);
}

static void rung(struct source *bell, uint32_t events) {
    struct peer *p = LISTED(bell, struct peer, bell);
    uint64_t count;
    (void)events;
    if (!p->dead)
        (void)!read(p->bell_fd, &count, sizeof count);
}

static void hello(struct peer *p) {
    int memory_fd;
    if (p->channel || !channel_open(p, &memory_fd)) {
        peer_answer(p, KREX_SIM_INVALID);
        return;
    }
    p->client = engine_client(p->server->engine, p, p->pid);
    p->arrived = krex_now_ns(); /* nothing of it can be older */
    p->bell.ready = rung;
    server_watch(p->server, p->bell_fd, &p->bell, EPOLLIN);
    reply(p, KREX_SIM_OK, (int[]){memory_fd, p->bell_fd});
    close(memory_fd);
}

static void memory(struct peer *p) {
    struct krex_sim_packet *q = &p->question;
    peer_answer(p, engine_memory(p->server->engine, q->device, &q->value, &q->value2));
}

static void name_kernel(struct peer *p) {
    struct krex_sim_packet *q = &p->question;
    uint32_t number = 0;
    q->text[sizeof q->text - 1] = 0;
    uint32_t status = engine_kernel(p->server->engine, q->text, &number);
    q->value = number;
    peer_answer(p, status);
}

/* As many as fit. */
static void residents(struct peer *p) {
    struct krex_sim_packet *q = &p->question;
    struct resident r;
    size_t used = 0;
    int from = (int)(q->value & INT32_MAX);
    memset(q->text, 0, sizeof q->text);
    q->value = 0;
    while (!q->value && engine_resident(p->server->engine, q->device, from, &r)) {
        char one[80];
        size_t n = (size_t)snprintf(one, sizeof one, "%d:%" PRIu64 ":%" PRIu64 ":%u ", r.pid,
                                    r.bytes, r.submitted, r.running);
        if (used + n < sizeof q->text)
            memcpy(q->text + used, one, n + 1);
        else
            q->value = (uint64_t)r.pid;
        used += n;
        from = r.pid + 1;
    }
    peer_answer(p, KREX_SIM_OK);
}

/* What only one who said HELLO may ask. */
static void serve_client(struct peer *p, uint64_t now) {
    const struct krex_sim_packet *q = &p->question;
    switch (q->op) {
    case KREX_SIM_CONTEXT:
        engine_context(p->client, q->device, now);
        break;
    case KREX_SIM_CONTEXT_END:
        engine_context_end(p->client, q->context, now);
        break;
    case KREX_SIM_LOAD:
        engine_load(p->client, q->context, q->value, now);
        break;
    case KREX_SIM_ALLOCATE:
        peer_answer(p, engine_allocate(p->client, q->context, q->value));
        break;
    case KREX_SIM_FREE:
        peer_answer(p, engine_release(p->client, q->context, q->value));
        break;
    case KREX_SIM_KERNEL:
        name_kernel(p);
        break;
    default:
        peer_answer(p, KREX_SIM_INVALID);
    }
}

static void serve(struct peer *p, uint64_t now) {
    p->waits = true;
    server_watch(p->server, p->socket_fd, &p->socket, 0); /* the next one when this is answered */
    if (p->question.op == KREX_SIM_HELLO)
        hello(p);
    else if (p->question.op == KREX_SIM_GONE)
        peer_look_for_gone(p);
    else if (p->question.op == KREX_SIM_MEMORY)
        memory(p);
    else if (p->question.op == KREX_SIM_RESIDENTS)
        residents(p);
    else if (p->client)
        serve_client(p, now);
    else
        peer_answer(p, KREX_SIM_INVALID);
}

static void readable(struct source *socket, uint32_t events) {
    struct peer *p = LISTED(socket, struct peer, socket);
    if (p->dead)
        return;
    /* What it submitted before it asked, or died, comes first. */
    uint64_t now = server_take_all(p->server);
    if (p->dead)
        return;
    if (events & (EPOLLHUP | EPOLLERR)) {
        peer_cut(p, NULL);
        return;
    }
    ssize_t n = recv(p->socket_fd, &p->question, sizeof p->question, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        peer_cut(p, NULL);
    else if (n != (ssize_t)sizeof p->question || p->question.magic != KREX_SIM_MAGIC)
        peer_cut(p, "its packets are of another version; use the libcuda.so.1 beside "
                    "krex-sim-device");
    else
        serve(p, now);
}

/* Its process ended. The socket need not have: a forked child may still have it open. */
static void ended(struct source *process, uint32_t events) {
    struct peer *p = LISTED(process, struct peer, process);
    (void)events;
    if (p->dead)
        return;
    server_take_all(p->server);
    peer_cut(p, NULL);
}

static int pid_of(int fd) {
    struct ucred who = {0};
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

struct peer *peer_new(struct server *s, int socket_fd) {
    struct peer *p = make(sizeof *p);
    p->server = s;
    p->socket_fd = socket_fd;
    p->bell_fd = -1;
    p->pid = pid_of(socket_fd);
    /* Where there is no such call, or it is of another pid namespace: its socket's end has to do. */
    p->process_fd = p->pid > 0 ? (int)syscall(SYS_pidfd_open, p->pid, 0) : -1;
    p->socket.ready = readable;
    p->process.ready = ended;
    server_watch(s, socket_fd, &p->socket, EPOLLIN);
    if (p->process_fd >= 0)
        server_watch(s, p->process_fd, &p->process, EPOLLIN);
    return p;
}
