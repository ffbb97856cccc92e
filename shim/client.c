/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "futex.h"
#include "gate.h"
#include "log.h"
#include "stop.h"
#include "unmarked.h"
#include "vendor.h"

#define HELLO_TIMEOUT_S 5
#define OTHER_VERSION "the controller is of another version (`krex doctor` says what to do)"

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* all below; held while this process registers, at most HELLO_TIMEOUT_S a step */
static pid_t tried_pid; /* the process that tried to register: a forked child tries anew */
static bool attached; /* it succeeded; where the generation is 0 all the same, that was a parent */
static int connection = -1;
static uint64_t connection_cookie;

/* Where controllers listen, in the order in which they are tried; krex/paths.py knows the same. */
enum place { GIVEN, USER, SYSTEM, PLACES };

static bool socket_address(struct sockaddr_un *a, enum place place) {
    const char *path = getenv("KREX_SOCKET");
    const char *run = getenv("XDG_RUNTIME_DIR");
    bool given = path && *path;
    int n;
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    if (given != (place == GIVEN))
        return false;
    if (given)
        n = snprintf(a->sun_path, sizeof a->sun_path, "%s", path);
    else if (place == SYSTEM)
        n = snprintf(a->sun_path, sizeof a->sun_path, "/run/krex/control.sock");
    else if (run && *run)
        n = snprintf(a->sun_path, sizeof a->sun_path, "%s/krex/control.sock", run);
    else
        n = snprintf(a->sun_path, sizeof a->sun_path, "/tmp/krex-%u/control.sock",
                     (unsigned)getuid());
    return n > 0 && (size_t)n < sizeof a->sun_path;
}

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

static int connect_to(const struct sockaddr_un *a) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    struct timeval limit = {HELLO_TIMEOUT_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0)
        return move_high(fd);
    close(fd);
    return -1;
}

static int connect_controller(void) {
    struct sockaddr_un a;
    int fd = -1;
    for (enum place place = GIVEN; place < PLACES && fd < 0; place++)
        if (socket_address(&a, place))
            fd = connect_to(&a);
    return fd;
}

/* The file for this process's records, -1 for none. Opened here and written by the controller: so the
 * path is the one that this process sees, and another user's controller needs no right to it. */
static int open_report(void) {
    const char *path = getenv("KREX_REPORT");
    if (!path || !*path)
        return -1;
    /* Not blocking: a pipe without a reader must hold up neither us nor the controller. */
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags, 0666);
    if (fd < 0)
        krex_warn("cannot write to KREX_REPORT=%.200s: %s", path, strerror(errno));
    return fd;
}

static void fill(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text ? text : "");
}

/* One descriptor as ancillary data. */
union attachment {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* `fd` goes along, if it is one. */
static bool send_wire(const struct krex_wire *m, int fd) {
    union attachment control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
                                           .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {(void *)m, sizeof *m};
    struct msghdr h = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
    }
    return sendmsg(connection, &h, MSG_NOSIGNAL) == (ssize_t)sizeof *m;
}

static struct krex_wire wire(enum krex_wire_type type, const char *text, const char *text2) {
    struct krex_wire m = {.magic = KREX_WIRE_MAGIC, .type = type};
    fill(m.text, sizeof m.text, text);
    fill(m.text2, sizeof m.text2, text2);
    return m;
}

static uint64_t socket_cookie(int fd) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size);
    return cookie;
}

/* A program that makes itself a daemon closes all descriptors, ours too, and may be given the same
 * number for a file of its own. */
static bool connected(void) {
    return connection >= 0 && socket_cookie(connection) == connection_cookie;
}

bool krex_client_send(enum krex_wire_type type, uint32_t slot, uint64_t value, const char *text,
                      const char *text2) {
    static uint32_t warned;
    struct krex_wire m = wire(type, text, text2);
    m.slot = slot;
    m.value = value;
    if (connected() && send_wire(&m, -1))
        return true;
    if (krex_cas_u32(&warned, 0, 1))
        krex_warn("the connection to the controller is lost: this process runs unprotected");
    return false;
}

/* Receives the answer to HELLO; the board's descriptor in *board_fd, or -1. NULL, or why there is none
 * that we understand. */
static const char *receive_answer(struct krex_wire *m, int *board_fd) {
    union attachment control;
    struct iovec data = {m, sizeof *m};
    struct msghdr h = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t n;
    *board_fd = -1;
    h.msg_control = control.bytes;
    h.msg_controllen = sizeof control.bytes;
    do
        n = recvmsg(connection, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&h) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(board_fd, CMSG_DATA(c), sizeof(int));
    if (n < (ssize_t)sizeof m->magic)
        return "the controller did not answer (`krex doctor` looks why)";
    return n == (ssize_t)sizeof *m && m->magic == KREX_WIRE_MAGIC ? NULL : OTHER_VERSION;
}

static struct krex_board *map_board(int fd) {
    /* lseek, because fstat has a version newer than we may ask for. */
    if (lseek(fd, 0, SEEK_END) < (off_t)sizeof(struct krex_board))
        return NULL;
    struct krex_board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (b == MAP_FAILED)
        return NULL;
    /* Acquire: pairs with krex_board_init's last store. */
    if (krex_load_acquire(&b->magic) == KREX_BOARD_MAGIC && b->compat <= KREX_BOARD_ABI &&
        b->abi >= KREX_BOARD_COMPAT)
        return b;
    munmap(b, sizeof *b);
    return NULL;
}

static bool drain_done(void) {
    bool done = true;
    KREX_EACH_VENDOR (v)
        done = done && (*v)->drain_done();
    return done;
}

/* One drain: until all is complete, or the controller asks for something else. */
static void drain(struct krex_block *b, uint64_t request) {
    uint64_t pause_ns = 20000;
    KREX_EACH_VENDOR (v)
        (*v)->drain_begin(request & KREX_ASK_IDLE);
    krex_stop_at("drain-begun");
    while (krex_load_acquire(&b->drain_request) == request) {
        if (drain_done()) {
            krex_stop_at("drain-done");
            /* Pairs with krex_block_drained, and with krex_block_is_idle. */
            krex_store_release(request & KREX_ASK_IDLE ? &b->idle : &b->drained, request);
            krex_stop_at("drain-told");
            break;
        }
        struct timespec t = {0, (long)pause_ns};
        nanosleep(&t, NULL);
        if (pause_ns < 500000)
            pause_ns += pause_ns / 4;
    }
    KREX_EACH_VENDOR (v)
        (*v)->drain_end();
}

/* The process's one native thread. It sleeps in the kernel until the controller asks. */
static void *drainer(void *block) {
    struct krex_block *b = block;
    uint64_t seen = 0;
    for (;;) {
        uint64_t request = krex_load_acquire(&b->drain_request);
        if (request == seen) {
            krex_futex_wait(&b->drain_request, (uint32_t)seen, UINT64_C(3600000000000));
            continue;
        }
        seen = request;
        if (request)
            drain(b, request);
    }
    return NULL;
}

static bool start_drainer(struct krex_block *b) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, old;
    sigfillset(&all); /* the user's signals are the user's threads' */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&thread, &attributes, drainer, b) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

static const char *join_board(const struct krex_wire *welcome, int fd) {
    struct krex_board *board = map_board(fd);
    if (!board || welcome->slot >= KREX_BLOCKS)
        return OTHER_VERSION;
    if (!start_drainer(&board->block[welcome->slot]))
        return "no thread could be started for draining";
    if (krex_gate_attach(board, welcome->slot) != 0)
        return "the kernel lacks MADV_WIPEONFORK";
    return NULL;
}

static const char *say_hello(const char *device, struct krex_wire *answer, int *board_fd) {
    struct krex_wire m = wire(KREX_WIRE_HELLO, device, getenv("KREX_COMMAND"));
    int report = open_report();
    bool sent = send_wire(&m, report);
    if (report >= 0)
        close(report);
    if (!sent)
        return "the controller hangs up (`krex doctor` looks why)";
    return receive_answer(answer, board_fd);
}

static const char *hello(const char *device) {
    static char refusal[128];
    struct krex_wire answer;
    int fd = -1;
    connection = connect_controller();
    if (connection < 0)
        return "no controller answers (start one with `krex serve`)";
    connection_cookie = socket_cookie(connection);
    const char *failure = say_hello(device, &answer, &fd);
    if (!failure && answer.type == KREX_WIRE_WELCOME && fd >= 0)
        failure = join_board(&answer, fd);
    else if (!failure)
        snprintf(refusal, sizeof refusal, "%.*s", (int)sizeof answer.text - 1, answer.text),
            failure = refusal;
    if (fd >= 0)
        close(fd);
    if (failure) {
        close(connection);
        connection = -1;
    }
    return failure;
}

/* This thread registers the process. A signal handler above it must not: the lock is its own. */
static __thread bool busy;

/* Another thread, or this one below a signal handler, may have held the lock at the fork. */
static void unlock_child(void) {
    pthread_mutex_init(&lock, NULL);
    busy = false;
}

static void attach_hook(void) { krex_client_ready(""); }

static void prepare_for_forks(void) {
    pthread_atfork(NULL, NULL, unlock_child);
    krex_gate_attach_hook = attach_hook; /* what a forked child starts from */
    krex_stop_prepare();
}

/* Under the lock. */
static void register_process(const char *device) {
    /* In a forked child this is its parent's: closing our copy keeps its EOF meaningful. */
    if (connected())
        close(connection);
    connection = -1;
    const char *failure = hello(device);
    attached = !failure;
    tried_pid = getpid();
    krex_say_if_unmarked();
    if (attached)
        krex_stop_at("registered");
    if (failure)
        krex_warn("this process runs unprotected: %s", failure);
}

bool krex_client_ready(const char *device) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (krex_process.generation || busy)
        return krex_process.generation != 0;
    int saved = errno;
    busy = true;
    pthread_once(&once, prepare_for_forks); /* before anybody holds the lock */
    pthread_mutex_lock(&lock);
    if (!krex_process.generation && (attached || tried_pid != getpid()))
        register_process(device);
    pthread_mutex_unlock(&lock);
    busy = false;
    errno = saved;
    return krex_process.generation != 0;
}

bool krex_client_flag(uint32_t flag) {
    if (!krex_process.generation)
        return false;
    return !(__atomic_fetch_or(&krex_process.block->flags, flag, __ATOMIC_SEQ_CST) & flag);
}
