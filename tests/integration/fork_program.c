/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks in a signal handler while it waits for its region. The child, which waits for nothing, goes on
 * at once; the parent prints its pid, and in the end the child's status and its own.
 */
#include <krex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t child = -1;

static void split(int number) {
    (void)number;
    child = fork();
}

int main(void) {
    int status = 0;
    struct sigaction action = {.sa_handler = split};
    sigaction(SIGUSR1, &action, NULL);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    krex_begin("waits");
    krex_end();
    if (child == 0)
        _exit(7);
    if (child > 0)
        waitpid(child, &status, 0);
    printf("%d %d\n", WIFSIGNALED(status), WEXITSTATUS(status));
    return 0;
}
