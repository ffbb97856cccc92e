/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks in a signal handler while it waits for its region: one of its own, or (EVENTS) that of a timed
 * event. The child goes on; the parent prints the child's status in the end. It says its pid when it is
 * ready, and begins at a line.
 */
#include <krex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef EVENTS
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, void *stream);

static void *context, *event;

static int prepare(void) {
    return cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuEventCreate(&event, 0);
}

static void wait_for_region(void) { cuEventRecord(event, NULL); }
#else
static int prepare(void) { return 0; }

static void wait_for_region(void) {
    krex_begin("waits");
    krex_end();
}
#endif

static volatile pid_t child = -1;

static void split(int number) {
    (void)number;
    child = fork();
}

int main(void) {
    int status = 0;
    struct sigaction action = {.sa_handler = split};
    if (prepare() || sigaction(SIGUSR1, &action, NULL))
        return 1;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    wait_for_region();
    if (child == 0)
        _exit(7);
    if (child > 0)
        waitpid(child, &status, 0);
    printf("%d %d\n", WIFSIGNALED(status), WEXITSTATUS(status));
    return 0;
}
