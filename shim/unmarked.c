/* SPDX-License-Identifier: Apache-2.0 */
#include "unmarked.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"
#include "log.h"
#include "region.h"

/* Where `krex run` lets interpreters find the marker: the end of krex.paths.watch_dir(). */
#define WATCH_DIR "/krex/marker/site"

static bool names_functions(void) {
    size_t length = 0;
    for (const char *rest = NULL, *item; (item = krex_region_item(&rest, &length));)
        if (length > 5 && !strncmp(item, "call:", 5))
            return true;
    return false;
}

/* By its file, as in a virtual environment too, whose `python` is a link to it. */
static bool is_python(void) {
    char path[PATH_MAX] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0)
        return false;
    const char *slash = strrchr(path, '/');
    return slash && (!strncmp(slash, "/python", 7) || !strncmp(slash, "/pypy", 5));
}

void krex_say_if_unmarked(void) {
    static uint32_t looked;
    if (!krex_cas_u32(&looked, 0, 1) || !names_functions() || !is_python())
        return;
    const char *path = getenv("PYTHONPATH");
    if (!path || !strstr(path, WATCH_DIR))
        krex_warn(
            "KREX_REGION names functions, but this Python was started without the PYTHONPATH "
            "of its command, so they are not marked in it; keep what that begins with, or mark "
            "by krex.region or KREX_REGION=events");
}
