/* SPDX-License-Identifier: Apache-2.0
 *
 * Times launches of an empty kernel on request: for each line "open N" or "region N" on stdin it
 * launches N / 4 times to warm up, then N times, and prints the nanoseconds a launch of these. The
 * argument is a file of PTX that has the kernel. Needs no header of the vendor's.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "krex.h"

enum { MOST_BYTES = 1 << 16 };

typedef int call(void *, void *, void *, void *, void *, void *, void *);
typedef int launch_call(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **parameters, void **extra);

static void *driver;

static void fail(const char *what, int code) {
    fprintf(stderr, "%s failed: %d\n", what, code);
    exit(1);
}

static void *find(const char *name) {
    void *at = dlsym(driver, name);
    if (!at)
        fail(name, 0);
    return at;
}

/* Calls a function whose parameters are pointers or fit into one. */
static void run(const char *name, void *a, void *b, void *c) {
    call *function = (call *)find(name);
    int code = function(a, b, c, NULL, NULL, NULL, NULL);
    if (code)
        fail(name, code);
}

static void *load(const char *path) {
    static char text[MOST_BYTES];
    void *context, *module, *function;
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, 0);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    run("cuInit", NULL, NULL, NULL);
    run("cuDevicePrimaryCtxRetain", &context, NULL, NULL);
    run("cuCtxSetCurrent", context, NULL, NULL);
    run("cuModuleLoadData", &module, text, NULL);
    run("cuModuleGetFunction", &function, module, "krex_check_noop");
    return function;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double ns_each(launch_call *launch, void *function, int times) {
    uint64_t start = now_ns();
    for (int i = 0; i < times; i++)
        if (launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
            fail("cuLaunchKernel", 0);
    return (double)(now_ns() - start) / times;
}

int main(int count, char **words) {
    char line[64];
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (count != 2 || !driver)
        fail("dlopen of libcuda.so.1", 0);
    void *function = load(words[1]);
    launch_call *launch = (launch_call *)find("cuLaunchKernel");
    ns_each(launch, function, 100);
    run("cuCtxSynchronize", NULL, NULL, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int inside = !strncmp(line, "region ", strlen("region "));
        int times = (int)strtol(strchr(line, ' ') ? strchr(line, ' ') : "", NULL, 10);
        if (times <= 0)
            fail(line, times);
        if (inside)
            krex_begin("launches");
        ns_each(launch, function, times / 4);
        run("cuCtxSynchronize", NULL, NULL, NULL);
        double ns = ns_each(launch, function, times);
        run("cuCtxSynchronize", NULL, NULL, NULL);
        if (inside)
            krex_end();
        printf("%.3f\n", ns);
        fflush(stdout);
    }
    return 0;
}
