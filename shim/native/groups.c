/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "futex.h"

/* A process stands still once it was scheduled, and it can't be while we look. */
#define LOOK_AGAIN_NS 50000

int krex_groups_write(const int *freeze, int count, int frozen) {
    int failure = 0;
    for (int i = 0; i < count; i++)
        if (pwrite(freeze[i], frozen ? "1" : "0", 1, 0) < 0 && !failure)
            failure = errno;
    return failure;
}

/* One without processes never says that it is frozen; nor does one that somebody removed, which had
 * none either. */
static bool stands_still(int events) {
    char text[64];
    ssize_t size = pread(events, text, sizeof text - 1, 0);
    if (size < 0)
        return errno == ENODEV;
    text[size] = '\0';
    return strstr(text, "frozen 1") || strstr(text, "populated 0");
}

/* From the end: what was asked last stands still last, and each look costs a system call. */
int krex_groups_await_frozen(const int *events, int count, uint64_t ns) {
    uint64_t deadline = krex_now_ns() + ns;
    for (;;) {
        while (count > 0 && stands_still(events[count - 1]))
            count--;
        if (count == 0 || krex_now_ns() >= deadline)
            return count;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
    }
}
