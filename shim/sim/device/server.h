/* SPDX-License-Identifier: Apache-2.0
 *
 * The one thread of the process: it sleeps until a client, or the model, has something for it.
 */
#ifndef KREX_SIM_SERVER_H
#define KREX_SIM_SERVER_H

#include "engine.h"
#include "log.h"
#include "peer.h"

struct server {
    struct model model;
    uint32_t devices;
    struct engine *engine;
    struct log *log; /* or NULL */
    struct link peers;
    int epoll_fd, listener_fd, timer_fd, signal_fd, parent_fd; /* -1: none */
    struct source listener, timer, signal, parent;
    uint64_t linger_ns;
    uint64_t alone_since; /* NEVER: it has clients */
    uint64_t armed;       /* what the timer is set to */
    bool something_gone;
    bool stopped;
};

struct options {
    const char *socket, *log, *model;
    uint32_t devices;
    uint64_t seed, linger_ns;
    int parent_fd;
};

/* Serves until it is told to stop, or has nothing to do any more. The exit status. */
int server_run(const struct options *);

/* Watches for these events from now on. */
void server_watch(struct server *, int fd, struct source *, uint32_t events);

/* Gives the model all that has been submitted until now, in the order of the stamps. Returns now. */
uint64_t server_take_all(struct server *);

#endif
