/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's end of a channel; see sim/wire.h. Our counts are in the peer; what stands in the channel
 * is what we tell.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "atomic.h"
#include "futex.h"
#include "peer.h"
#include "server.h"

static void describe(struct krex_sim_device *d, const struct model *m, uint32_t number) {
    static const unsigned char uuid[16] = "KREX-SIM\x80";
    memcpy(d->name, m->name, sizeof d->name);
    memcpy(d->uuid, uuid, sizeof d->uuid);
    d->uuid[15] = (char)number;
    d->memory = m->memory_bytes;
    d->multiprocessors = (uint32_t)m->multiprocessors;
    d->clock_khz = (uint32_t)m->clock_khz;
    d->memory_clock_khz = (uint32_t)m->memory_clock_khz;
    d->bus_bits = (uint32_t)m->bus_bits;
    d->l2_bytes = (uint32_t)m->l2_bytes;
    d->major = (uint32_t)m->major;
    d->minor = (uint32_t)m->minor;
    d->number = number;
}

/* Sealed: a client that made it smaller would end us by a SIGBUS. */
static int make_memory(void) {
    int fd = memfd_create("krex-sim-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, sizeof(struct krex_sim_channel)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool channel_open(struct peer *p, int *memory_fd) {
    const struct server *s = p->server;
    *memory_fd = make_memory();
    p->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct krex_sim_channel *c = MAP_FAILED;
    if (*memory_fd >= 0 && p->bell_fd >= 0)
        c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, *memory_fd, 0);
    if (c == MAP_FAILED) {
        if (*memory_fd >= 0)
            close(*memory_fd);
        return false;
    }
    c->magic = KREX_SIM_MAGIC;
    c->devices = s->devices;
    for (uint32_t i = 0; i < s->devices; i++)
        describe(&c->device[i], &s->model, i);
    p->channel = c;
    return true;
}

bool channel_is_empty(const struct peer *p) {
    return !p->client || krex_load_acquire(&p->channel->submitted) == p->taken;
}

/* A stamp can't be of the future, nor before the last one's. */
static uint64_t believable(struct peer *p, uint64_t stamp, uint64_t *now) {
    if (stamp > *now)
        *now = krex_now_ns(); /* it was stamped while we looked */
    if (stamp > *now)
        stamp = *now;
    if (stamp < p->arrived)
        stamp = p->arrived;
    return p->arrived = stamp;
}

bool channel_take(struct peer *p, uint64_t *now) {
    struct krex_sim_channel *c = p->channel;
    if (p->has_next)
        return true;
    uint64_t submitted = krex_load_acquire(&c->submitted); /* pairs with the client's release */
    if (submitted == p->taken)
        return false;
    if (submitted - p->taken > KREX_SIM_RING) {
        peer_cut(p, "its ring has more commands than places");
        return false;
    }
    p->next = c->command[p->taken % KREX_SIM_RING];
    p->next.arrival_ns = believable(p, p->next.arrival_ns, now);
    p->has_next = true;
    /* Release: the place may be written again. If we die here it is lost, as all else is. */
    krex_store_release(&c->taken, ++p->taken);
    return true;
}

void channel_give(struct peer *p, const struct krex_sim_result *r) {
    struct krex_sim_channel *c = p->channel;
    c->result[p->given % KREX_SIM_RESULTS] = *r;
    krex_store_release(&c->given, ++p->given); /* pairs with the client's acquire */
}

void channel_wake(struct peer *p) {
    if (!p->client || p->woken == p->given)
        return;
    p->woken = p->given;
    krex_futex_wake_all(&p->channel->given);
}

void channel_sleep(struct peer *p, bool asleep) {
    if (p->client)
        krex_store_relaxed(&p->channel->asleep, asleep);
}

void channel_lose(struct peer *p) {
    if (!p->client)
        return;
    krex_store_release(&p->channel->lost, 1);
    krex_futex_wake_all(&p->channel->given);
}

void channel_close(struct peer *p) {
    if (p->channel)
        munmap(p->channel, sizeof *p->channel);
    p->channel = NULL;
}
