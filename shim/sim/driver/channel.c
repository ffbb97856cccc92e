/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "atomic.h"
#include "futex.h"
#include "worker.h"

/* Contexts are made one at a time on the whole machine, and code may be long: those answers take. */
#define QUICK_NS (30 * UINT64_C(1000000000))
#define SLOW_NS (600 * UINT64_C(1000000000))

static pthread_mutex_t socket_lock = PTHREAD_MUTEX_INITIALIZER; /* one packet and its answer */
static int connection = -1, doorbell = -1;
static struct krex_sim_channel *channel;
static bool lost;

struct krex_sim_channel *drv_channel(void) { return channel; }

int drv_connection(void) { return connection; }

/* Programs expect low descriptors to be theirs. */
static int move_high(int fd) {
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 512);
    if (high < 0)
        high = fcntl(fd, F_DUPFD_CLOEXEC, 64);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static int connect_to(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return move_high(fd);
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* True once there is something to read. A process may stand still for longer than any limit, and the
 * answer lie there when it goes on: so there is always one look more. */
static bool await(int fd, uint64_t limit_ns) {
    uint64_t end = krex_now_ns() + limit_ns;
    for (;;) {
        uint64_t now = krex_now_ns();
        struct pollfd p = {fd, POLLIN, 0};
        int n = poll(&p, 1, now < end ? (int)((end - now) / 1000000 + 1) : 0);
        if (n > 0 || (n < 0 && errno != EINTR))
            return n > 0 && p.revents & POLLIN;
        if (now >= end)
            return false;
    }
}

/* The answer, and up to two descriptors that came with it. */
static bool receive(struct krex_sim_packet *packet, int fds[2], uint64_t limit_ns) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec data = {packet, sizeof *packet};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
    m.msg_control = &control;
    m.msg_controllen = sizeof control;
    uint32_t op = packet->op;
    ssize_t n = -1;
    while (n < 0 && await(connection, limit_ns)) {
        n = recvmsg(connection, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
    }
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
        memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
    return n == (ssize_t)sizeof *packet && packet->magic == KREX_SIM_MAGIC && packet->op == op;
}

static bool exchange(struct krex_sim_packet *packet, int fds[2]) {
    bool slow = packet->op == KREX_SIM_CONTEXT || packet->op == KREX_SIM_CONTEXT_END ||
                packet->op == KREX_SIM_LOAD || packet->op == KREX_SIM_GONE;
    packet->magic = KREX_SIM_MAGIC;
    ssize_t n;
    do
        n = send(connection, packet, sizeof *packet, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *packet && receive(packet, fds, slow ? SLOW_NS : QUICK_NS);
}

enum drv_result drv_packet(struct krex_sim_packet *packet) {
    int none[2] = {-1, -1};
    pthread_mutex_lock(&socket_lock);
    bool answered = !drv_lost() && exchange(packet, none);
    pthread_mutex_unlock(&socket_lock);
    if (!answered)
        drv_lose();
    return answered ? drv_status(packet->status) : DRV_LOST;
}

enum drv_result drv_status(uint32_t status) {
    switch (status) {
    case KREX_SIM_OK:
        return DRV_OK;
    case KREX_SIM_OUT_OF_MEMORY:
        return DRV_OUT_OF_MEMORY;
    case KREX_SIM_INVALID:
        return DRV_INVALID_VALUE;
    case KREX_SIM_ILLEGAL_ADDRESS:
        return DRV_ILLEGAL_ADDRESS;
    case KREX_SIM_LAUNCH_TIMEOUT:
        return DRV_LAUNCH_TIMEOUT;
    case KREX_SIM_ENDED:
        return DRV_CONTEXT_DESTROYED;
    default:
        return DRV_LOST;
    }
}

static bool map(const int fds[2]) {
    size_t bytes = sizeof *channel;
    struct krex_sim_channel *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    close(fds[0]);
    if (at == MAP_FAILED || at->magic != KREX_SIM_MAGIC || at->devices > KREX_SIM_DEVICES)
        return false;
    madvise(at, bytes, MADV_DONTFORK);
    madvise(at, bytes, MADV_DONTDUMP);
    doorbell = move_high(fds[1]);
    channel = at;
    return true;
}

enum drv_result drv_channel_connect(void) {
    const char *path = getenv("KREX_SIM_SOCKET");
    if (!path || !*path) {
        fputs("krex: the simulated driver is loaded, but KREX_SIM_SOCKET is not set; "
              "start the command by `krex run --sim`\n",
              stderr);
        return DRV_NO_DEVICE;
    }
    connection = connect_to(path);
    if (connection < 0) {
        fprintf(stderr, "krex: no simulated devices at KREX_SIM_SOCKET=%s: %m\n", path);
        return DRV_NO_DEVICE;
    }
    struct krex_sim_packet hello = {.op = KREX_SIM_HELLO};
    int fds[2] = {-1, -1};
    if (exchange(&hello, fds) && hello.status == KREX_SIM_OK && fds[0] >= 0 && map(fds))
        return DRV_OK;
    fprintf(stderr,
            "krex: the process of the simulated devices at %s is of another version, or "
            "does not answer; start it again\n",
            path);
    return DRV_NO_DEVICE;
}

void drv_channel_ring(void) {
    uint64_t one = 1;
    krex_full_fence(); /* pairs with the device's, between setting asleep and its last look */
    if (krex_load_relaxed(&channel->asleep) && write(doorbell, &one, sizeof one) < 0)
        drv_lose();
}

void drv_channel_leave(void) {
    close(connection);
    close(doorbell);
    connection = doorbell = -1;
    pthread_mutex_init(&socket_lock, NULL);
}

bool drv_lost(void) { return krex_load_acquire(&lost) || krex_load_acquire(&channel->lost); }

void drv_lose(void) {
    krex_store_release(&lost, true);
    krex_futex_wake_all(&channel->given); /* the worker: it ends what is under way */
}
