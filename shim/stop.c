/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char wanted[32];                                   /* a point, or * */
static struct sockaddr_un test = {.sun_family = AF_UNIX}; /* no path: by our own hand */
static int number;                                        /* the signal, then */

/* Says where we are, and waits; a test that is gone lets us go on. */
static void ask(const char *name) {
    char text[64];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(text, sizeof text, "%s %d\n", name, (int)getpid());
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&test, sizeof test) == 0 &&
        send(fd, text, (size_t)n, MSG_NOSIGNAL) == n)
        while (recv(fd, text, 1, 0) < 0 && errno == EINTR) {
        }
    close(fd);
}

static void stop(const char *name) {
    int saved = errno;
    if (*wanted != '*' && strcmp(wanted, name) != 0)
        return;
    if (*test.sun_path)
        ask(name);
    else
        kill(getpid(), number);
    errno = saved;
}

void krex_stop_prepare(void) {
    const char *text = getenv("KREX_TEST_STOP_AT");
    const char *action = text ? strchr(text, ':') : NULL;
    if (!action || (size_t)(action - text) >= sizeof wanted)
        return;
    memcpy(wanted, text, (size_t)(action - text));
    if (action[1] == '/')
        snprintf(test.sun_path, sizeof test.sun_path, "%s", action + 1);
    number = strcmp(action + 1, "kill") ? SIGSTOP : SIGKILL;
    krex_store_release(&krex_stop_hook, stop);
}
