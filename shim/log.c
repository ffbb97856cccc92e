/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "atomic.h"

void krex_warn(const char *format, ...) {
    static uint32_t lines;
    if (__atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED) > 16)
        return;
    int saved = errno;
    char line[400];
    int n = snprintf(line, sizeof line, "krex: ");
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    n += m < (int)sizeof line - n - 1 ? m : (int)sizeof line - n - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0) {
        /* nowhere to say so */
    }
    errno = saved;
}
