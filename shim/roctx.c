/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD's ranges as marks (ranges.h): a program's calls of roctx come by here, on their way to its own
 * library. It has a vendor's entry only so that programs which look its functions up get these.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "arm.h"
#include "atomic.h"
#include "gpu/library.h"
#include "ranges.h"
#include "resolve.h"
#include "vendor.h"

#define HOOK __attribute__((visibility("default")))

/* The older library, and that of the profiler's second generation. */
static const char *const sonames[] = {"libroctx64.so.4", "librocprofiler-sdk-roctx.so.1",
                                      "librocprofiler-sdk-roctx.so.0", NULL};
static const char *const prefixes[] = {"libroctx64.so", "librocprofiler-sdk-roctx.so"};

static bool owns(const char *path) {
    return krex_library_is(path, prefixes[0]) || krex_library_is(path, prefixes[1]);
}

static void *find(const char *name) {
    static void *library; /* kept: there is one */
    void *handle = krex_load_acquire(&library);
    for (size_t i = 0; !handle && i < sizeof prefixes / sizeof prefixes[0]; i++)
        handle = krex_library_loaded(sonames, prefixes[i]);
    krex_store_release(&library, handle);
    return handle ? krex_real_dlsym(handle, name) : NULL;
}

/* Looked up once: a lookup takes the loader's lock, and a range is begun in the middle of anything. */
static void *find_once(void **known, const char *name) {
    void *function = krex_load_acquire(known);
    if (!function) {
        int saved = errno;
        function = find(name);
        krex_store_release(known, function);
        errno = saved;
    }
    return function;
}

/* Ranges of the process that arm: one more than what the library calls them, 0: none. More at a time
 * mark nothing. */
enum { STARTED = 16 };
static uint64_t started[STARTED];

static bool replace_started(uint64_t before, uint64_t after) {
    for (int i = 0; i < STARTED; i++)
        if (krex_cas_u64(&started[i], before, after))
            return true;
    return false;
}

HOOK int roctxRangePushA(const char *message) {
    static void *known;
    int (*real)(const char *) = (int (*)(const char *))find_once(&known, "roctxRangePushA");
    if (krex_ranges_asked())
        krex_range_push(NULL, krex_range_of(message));
    return real ? real(message) : -1;
}

HOOK int roctxRangePop(void) {
    static void *known;
    int (*real)(void) = (int (*)(void))find_once(&known, "roctxRangePop");
    int level = real ? real() : -1;
    if (krex_ranges_asked())
        krex_range_pop(NULL);
    return level;
}

HOOK uint64_t roctxRangeStartA(const char *message) {
    static void *known;
    uint64_t (*real)(const char *) =
        (uint64_t (*)(const char *))find_once(&known, "roctxRangeStartA");
    const struct krex_range *range = krex_ranges_asked() ? krex_range_of(message) : NULL;
    uint64_t id = real ? real(message) : 0;
    if (range && replace_started(0, id + 1))
        krex_range_arm(range);
    return id;
}

HOOK void roctxRangeStop(uint64_t id) {
    static void *known;
    void (*real)(uint64_t) = (void (*)(uint64_t))find_once(&known, "roctxRangeStop");
    if (real)
        real(id);
    if (krex_ranges_asked() && replace_started(id + 1, 0))
        krex_disarm();
}

/* --- for who looks them up --- */

static const struct {
    const char *name;
    void *function;
} hooks[] = {
    {"roctxRangePushA", (void *)roctxRangePushA},
    {"roctxRangePop", (void *)roctxRangePop},
    {"roctxRangeStartA", (void *)roctxRangeStartA},
    {"roctxRangeStop", (void *)roctxRangeStop},
};

static void *hook_of(const char *name) {
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
        if (!strcmp(name, hooks[i].name))
            return hooks[i].function;
    return NULL;
}

static bool cares(const char *name) { return !strncmp(name, "roctx", 5) && hook_of(name); }

static void *hand_out(const char *name, void *real) { return real ? hook_of(name) : NULL; }

static void begin_nothing(bool asks_only) { (void)asks_only; }
static void end_nothing(void) {}
static bool done(void) { return true; }
static void no_stand_in(bool hooked, uint64_t times) { (void)hooked, (void)times; }

static const struct krex_vendor roctx = {
    .name = "roctx",
    .drain_begin = begin_nothing,
    .drain_done = done,
    .drain_end = end_nothing,
    .cares = cares,
    .owns = owns,
    .find = find,
    .hand_out = hand_out,
    .stand_in = no_stand_in,
};

KREX_VENDOR(roctx);
