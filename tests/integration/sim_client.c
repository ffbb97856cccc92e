/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of the simulated devices without a driver: does what its standard input says, a line at a
 * time, and answers each with a line. A test drives it.
 *
 *   ask OP DEVICE CONTEXT VALUE [TEXT]   a packet; "STATUS CONTEXT VALUE VALUE2"
 *   begin OP DEVICE CONTEXT VALUE        the same without waiting for the answer; "begun"
 *   answer                               waits for that
 *   send KIND CONTEXT STREAM AMOUNT FLAGS KERNEL [AFTER]   a command; its number
 *   wait SEQ WHAT                        for a result; "STATUS START END"
 *   device N                             "NAME MEMORY NUMBER"
 *   break ring|packet|magic|seq|kind|shrink   what no driver does
 *   fork                                 a child that keeps all descriptors; its pid
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "atomic.h"
#include "futex.h"
#include "sim/wire.h"

static int connection, doorbell = -1, memory = -1;
static struct krex_sim_channel *channel;
static struct krex_sim_packet packet;
static uint64_t last_seq, seen;
static struct krex_sim_result kept[3][4096];

static void say(const char *text) {
    (void)puts(text);
    (void)fflush(stdout);
}

static void map_channel(const int *fds) {
    memory = fds[0];
    doorbell = fds[1];
    channel = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (channel == MAP_FAILED || channel->magic != KREX_SIM_MAGIC)
        exit(3);
}

static bool receive(void) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec data = {&packet, sizeof packet};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
    m.msg_control = control.bytes;
    m.msg_controllen = sizeof control.bytes;
    if (recvmsg(connection, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof packet)
        return false;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
        int fds[2];
        memcpy(fds, CMSG_DATA(c), sizeof fds);
        map_channel(fds);
    }
    return true;
}

static void answer(void) {
    char line[128];
    if (!receive()) {
        say("cut off");
        return;
    }
    (void)snprintf(line, sizeof line, "%u %u %" PRIu64 " %" PRIu64, packet.status, packet.context,
                   packet.value, packet.value2);
    say(line);
}

/* The next number of a line, which is moved behind it; 0: there is none. */
static uint64_t next(char **rest) { return strtoull(*rest, rest, 10); }

static void ask(char *rest, bool wait) {
    memset(&packet, 0, sizeof packet);
    packet.magic = KREX_SIM_MAGIC;
    packet.op = (uint32_t)next(&rest);
    packet.device = (uint32_t)next(&rest);
    packet.context = (uint32_t)next(&rest);
    packet.value = next(&rest);
    (void)snprintf(packet.text, sizeof packet.text, "%s", *rest ? rest + 1 : "");
    if (send(connection, &packet, sizeof packet, MSG_NOSIGNAL) < 0)
        say("cut off");
    else if (wait)
        answer();
    else
        say("begun");
}

static void ring(void) {
    uint64_t one = 1;
    krex_full_fence(); /* pairs with the device's before its last look */
    if (krex_load_relaxed(&channel->asleep))
        (void)!write(doorbell, &one, sizeof one);
}

static void publish(const struct krex_sim_command *c) {
    channel->command[channel->submitted % KREX_SIM_RING] = *c;
    krex_store_release(&channel->submitted, channel->submitted + 1);
    ring();
}

static void submit(char *rest) {
    char line[32];
    struct krex_sim_command c = {.seq = ++last_seq, .arrival_ns = krex_now_ns(), .blocks = 1};
    c.kind = (uint32_t)next(&rest);
    c.context = (uint32_t)next(&rest);
    c.stream = (uint32_t)next(&rest);
    c.amount = next(&rest);
    c.flags = (uint32_t)next(&rest);
    c.kernel = (uint32_t)next(&rest);
    c.after[0] = next(&rest);
    c.threads = 1;
    publish(&c);
    (void)snprintf(line, sizeof line, "%" PRIu64, c.seq);
    say(line);
}

static void keep_results(uint64_t given) {
    for (; seen < given; seen++) {
        const struct krex_sim_result *r = &channel->result[seen % KREX_SIM_RESULTS];
        kept[r->what % 3][r->seq % 4096] = *r;
    }
}

static void wait_for(char *rest) {
    uint64_t seq = next(&rest), what = next(&rest);
    char line[128];
    const struct krex_sim_result *r = &kept[what % 3][seq % 4096];
    for (uint64_t given; keep_results(given = krex_load_acquire(&channel->given)), r->seq != seq;) {
        if (krex_load_acquire(&channel->lost)) {
            say("lost");
            return;
        }
        krex_futex_wait(&channel->given, (uint32_t)given, UINT64_C(1000000000));
    }
    (void)snprintf(line, sizeof line, "%u %" PRIu64 " %" PRIu64, r->status, r->start_ns, r->end_ns);
    say(line);
}

static void describe(char *rest) {
    const struct krex_sim_device *d = &channel->device[next(&rest) % KREX_SIM_DEVICES];
    char line[256];
    (void)snprintf(line, sizeof line, "%s|%" PRIu64 "|%u", d->name, d->memory, d->number);
    say(line);
}

static void break_it(const char *how) {
    struct krex_sim_command c = {.seq = last_seq + 1, .kind = 99};
    if (!strcmp(how, "ring")) {
        krex_store_release(&channel->submitted, UINT64_MAX / 2);
        ring();
    } else if (!strcmp(how, "packet")) {
        (void)!send(connection, &packet, 7, MSG_NOSIGNAL);
    } else if (!strcmp(how, "magic")) {
        packet.magic = 1;
        (void)!send(connection, &packet, sizeof packet, MSG_NOSIGNAL);
    } else if (!strcmp(how, "seq")) {
        c = (struct krex_sim_command){.kind = KREX_SIM_EVENT};
        publish(&c);
    } else if (!strcmp(how, "kind")) {
        publish(&c);
    } else if (!strcmp(how, "shrink")) {
        say(ftruncate(memory, 0) ? strerrorname_np(errno) : "shrunk");
        return;
    }
    answer();
}

static void fork_child(void) {
    char line[32];
    pid_t child = fork();
    if (!child)
        for (;;)
            pause();
    (void)snprintf(line, sizeof line, "%d", (int)child);
    say(line);
}

static void obey(char *line) {
    char *rest = line;
    const char *word = strsep(&rest, " \n");
    rest = rest ? rest : line + strlen(line);
    rest[strcspn(rest, "\n")] = 0;
    if (!strcmp(word, "ask"))
        ask(rest, true);
    else if (!strcmp(word, "begin"))
        ask(rest, false);
    else if (!strcmp(word, "answer"))
        answer();
    else if (!strcmp(word, "send"))
        submit(rest);
    else if (!strcmp(word, "wait"))
        wait_for(rest);
    else if (!strcmp(word, "device"))
        describe(rest);
    else if (!strcmp(word, "break"))
        break_it(rest);
    else if (!strcmp(word, "fork"))
        fork_child();
}

int main(int argc, char **argv) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char line[2048];
    if (argc != 2)
        return 2;
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", argv[1]);
    connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (const struct sockaddr *)&a, sizeof a))
        return 1;
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
