/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one call by the road that it is told, in a process with a context, and says what it found:
 *
 *     cuda_roads ROAD SYMBOL [BASE VERSION FLAGS]
 *
 * With -DLINKED it is linked with the driver, as nvcc's programs are; else it loads the file that
 * DRIVER names, as runtimes do.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*function)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *, void *, void *);
typedef int (*resolver)(const char *, void **, int, unsigned long);
typedef int (*resolver2)(const char *, void **, int, unsigned long, unsigned *);

#ifdef LINKED
int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
#endif

static void *driver;

static void *look_up(const char *symbol) { return dlsym(driver, symbol); }

static void begin(void) {
#ifdef LINKED
    driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    void *context;
    cuInit(0);
    cuCtxCreate_v2(&context, 0, 0);
#else
    driver = dlopen(getenv("DRIVER"), RTLD_NOW | RTLD_LOCAL);
    void *context;
    ((int (*)(unsigned))look_up("cuInit"))(0);
    ((int (*)(void **, unsigned, int))look_up("cuCtxCreate_v2"))(&context, 0, 0);
#endif
}

static int number(const char *text) { return (int)strtol(text, NULL, 10); }

static void *ask(resolver r, char **what) {
    void *found = NULL;
    int result = r(what[0], &found, number(what[1]), (unsigned long)number(what[2]));
    printf("result=%d\n", result);
    return found;
}

static void *ask2(resolver2 r, char **what) {
    void *found = NULL;
    unsigned status = 77;
    int result = r(what[0], &found, number(what[1]), (unsigned long)number(what[2]), &status);
    printf("result=%d\nstatus=%u\n", result, status);
    void *again = NULL;
    r(what[0], &again, number(what[1]), (unsigned long)number(what[2]), NULL); /* it is optional */
    return again == found ? found : NULL;
}

static void *resolver_of(void *r, int version) {
    void *found = NULL;
    ((resolver2)r)("cuGetProcAddress", &found, version, 0, NULL);
    return found;
}

static void *find(const char *road, const char *symbol, char **what) {
    if (!strcmp(road, "handle"))
        return look_up(symbol);
    if (!strcmp(road, "default"))
        return dlsym(RTLD_DEFAULT, symbol);
    if (!strcmp(road, "next"))
        return dlsym(RTLD_NEXT, symbol);
    if (!strcmp(road, "versioned"))
        return dlvsym(driver, symbol, "CUDA_1.0");
    if (!strcmp(road, "resolver"))
        return ask((resolver)look_up("cuGetProcAddress"), what);
    if (!strcmp(road, "resolver2"))
        return ask2((resolver2)look_up("cuGetProcAddress_v2"), what);
    if (!strcmp(road, "itself"))
        return ask((resolver)resolver_of(look_up("cuGetProcAddress_v2"), 11030), what);
    if (!strcmp(road, "itself2"))
        return ask2((resolver2)resolver_of(look_up("cuGetProcAddress_v2"), 12000), what);
#ifdef LINKED
    if (!strcmp(road, "direct"))
        return (void *)cuLaunchKernel;
#endif
    return NULL;
}

static const char *file_of(void *f) {
    Dl_info info;
    return f && dladdr(f, &info) ? strrchr(info.dli_fname, '/') + 1 : "none";
}

int main(int argc, char **argv) {
    begin();
    function f = (function)find(argv[1], argv[2], argv + 3);
    (void)argc;
    printf("from=%s\n", file_of((void *)f));
    int (*calls)(const char *) = (int (*)(const char *))look_up("fake_calls");
    int before = calls(argv[2]);
    if (f)
        printf("returned=%d\n", f(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    printf("calls=%d\n", calls(argv[2]) - before);
    return 0;
}
