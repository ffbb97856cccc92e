/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection: its packets, and the channel that it gets by saying HELLO. Nothing that it sends or
 * writes is believed: it is copied first, then looked at.
 */
#ifndef KREX_SIM_PEER_H
#define KREX_SIM_PEER_H

#include "engine.h"
#include "list.h"

struct server;

/* Something that epoll watches. */
struct source {
    void (*ready)(struct source *, uint32_t events);
};

struct peer {
    struct server *server;
    struct source socket, bell, process;
    int socket_fd, bell_fd, process_fd; /* -1: none */
    int pid;                            /* 0: of another pid namespace */
    bool dead;                          /* cut off; freed when nobody looks at it any more */
    struct krex_sim_packet question;    /* while it waits for the answer */
    bool waits;
    struct krex_sim_channel *channel; /* NULL: it has not said HELLO */
    struct client *client;            /* NULL likewise, and when it is dead */
    struct krex_sim_command next;     /* taken out of the ring; looked at when its time has come */
    bool has_next;
    uint64_t arrived; /* the last one's stamp: they do not go back */
    uint64_t taken, given, woken;
    struct link listed;
};

struct peer *peer_new(struct server *, int socket_fd);
void peer_cut(struct peer *, const char *why); /* NULL: it went by itself */
void peer_free(struct peer *);
void peer_answer(struct peer *, uint32_t status);
void peer_look_for_gone(struct peer *); /* answers a GONE, if it has come true */

/* channel.c. All but the first do nothing for a peer that is no client. */
bool channel_open(struct peer *, int *memory_fd);
bool channel_take(struct peer *, uint64_t *now); /* into next, if there is one */
void channel_give(struct peer *, const struct krex_sim_result *);
void channel_wake(struct peer *); /* who waits for results, if there are new ones */
void channel_sleep(struct peer *, bool asleep);
bool channel_is_empty(const struct peer *);
void channel_lose(struct peer *);
void channel_close(struct peer *);

#endif
