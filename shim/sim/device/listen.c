/* SPDX-License-Identifier: Apache-2.0 */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    dev_t device;
    ino_t inode;
} bound;

static int complain(const char *path, const char *why) {
    (void)fprintf(stderr, "krex-sim-device: %s: %s\n", path, why);
    return -1;
}

static int new_socket(void) {
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Whether somebody listens there. A full backlog is somebody, too. */
static bool is_served(const struct sockaddr_un *a) {
    int fd = new_socket();
    bool served =
        fd >= 0 && (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return served;
}

/* A socket that nobody listens at any more is nobody's; all else is left alone. */
static bool is_free(const struct sockaddr_un *a) {
    struct stat s;
    if (lstat(a->sun_path, &s))
        return true;
    if (!S_ISSOCK(s.st_mode))
        complain(a->sun_path, "there is a file of that name that is no socket");
    else if (is_served(a))
        complain(a->sun_path, "simulated devices are served there already; use them, or another "
                              "--socket");
    else
        return true;
    return false;
}

/* Bound under another name first: who sees the name finds somebody who listens. */
static bool bind_and_listen(int fd, const struct sockaddr_un *a) {
    struct sockaddr_un early = *a;
    struct stat s;
    early.sun_path[strlen(a->sun_path)] = '~'; /* there is room: listen_at saw to that */
    unlink(early.sun_path);
    mode_t old = umask(0177);
    bool good = !bind(fd, (const struct sockaddr *)&early, sizeof early);
    umask(old);
    good = good && !listen(fd, SOMAXCONN) && !lstat(early.sun_path, &s) &&
           !rename(early.sun_path, a->sun_path);
    if (!good) {
        complain(a->sun_path, strerror(errno));
        return false;
    }
    bound.device = s.st_dev;
    bound.inode = s.st_ino;
    return true;
}

static int bind_at(const struct sockaddr_un *a) {
    int fd = is_free(a) ? new_socket() : -1;
    if (fd >= 0 && !bind_and_listen(fd, a)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Locked, so that two that start at once do not take each other's socket for a stale one. */
static int lock_folder(const char *path) {
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0;
    (void)snprintf(folder, sizeof folder, "%.*s%s", length, path, slash ? "/" : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX)) {
        complain(folder, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

int listen_at(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) + 1 >= sizeof a.sun_path)
        return complain(path, "too long for a socket (106 bytes)");
    memcpy(a.sun_path, path, strlen(path));
    int lock = lock_folder(path);
    if (lock < 0)
        return -1;
    int fd = bind_at(&a);
    close(lock);
    return fd;
}

void listen_end(int fd, const char *path) {
    struct stat s;
    if (lstat(path, &s) == 0 && s.st_dev == bound.device && s.st_ino == bound.inode)
        unlink(path);
    close(fd);
}
