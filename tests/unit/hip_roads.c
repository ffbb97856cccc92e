/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one call by the road that it is told, in a process that has touched a device, and says what it
 * found:
 *
 *     hip_roads ROAD SYMBOL [NAME FLAGS]
 *
 * With -DLINKED it is linked with the runtime, as hipcc's programs are, by versioned references; else
 * it loads the file that DRIVER names, as Triton does.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*function)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *, void *, void *);
typedef int (*resolver)(const char *, void **, int, unsigned long, unsigned *);
typedef int (*entry_point)(const char *, void **, unsigned long long, unsigned *);

#ifdef LINKED
int hipMalloc(void **, size_t);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
int mangled(void *, unsigned) __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_"
    "j");
#endif

static void *driver;

static void *look_up(const char *symbol) { return dlsym(driver, symbol); }

static void begin(void) {
    void *memory;
#ifdef LINKED
    driver = dlopen(getenv("DRIVER"), RTLD_NOLOAD | RTLD_LAZY);
    hipMalloc(&memory, 1);
#else
    driver = dlopen(getenv("DRIVER"), RTLD_NOW | RTLD_LOCAL);
    ((int (*)(void **, size_t))look_up("hipMalloc"))(&memory, 1);
#endif
}

static void *ask(resolver r, const char *name, unsigned long flags) {
    void *found = NULL, *again = NULL;
    unsigned status = 77;
    int result = r(name, &found, 60000000, flags, &status);
    printf("result=%d\nstatus=%u\n", result, status);
    r(name, &again, 60000000, flags, NULL); /* it is optional */
    return again == found ? found : NULL;
}

static void *ask_entry(const char *name, unsigned long flags) {
    void *found = NULL;
    unsigned status = 77;
    entry_point e = (entry_point)look_up("hipGetDriverEntryPoint");
    printf("result=%d\n", e(name, &found, flags, &status));
    return found;
}

static void *find(const char *road, const char *symbol, char **what) {
    unsigned long flags = what[0] && what[1] ? strtoul(what[1], NULL, 10) : 0;
    if (!strcmp(road, "handle"))
        return look_up(symbol);
    if (!strcmp(road, "default"))
        return dlsym(RTLD_DEFAULT, symbol);
    if (!strcmp(road, "next"))
        return dlsym(RTLD_NEXT, symbol);
    if (!strcmp(road, "versioned"))
        return dlvsym(driver, symbol, "hip_4.2");
    if (!strcmp(road, "resolver"))
        return ask((resolver)look_up("hipGetProcAddress"), what[0], flags);
    if (!strcmp(road, "resolver_spt"))
        return ask((resolver)look_up("hipGetProcAddress_spt"), what[0], flags);
    if (!strcmp(road, "itself")) {
        void *again = ask((resolver)look_up("hipGetProcAddress"), "hipGetProcAddress", 0);
        return ask((resolver)again, what[0], flags);
    }
    if (!strcmp(road, "entry"))
        return ask_entry(what[0], flags);
#ifdef LINKED
    if (!strcmp(road, "direct"))
        return (void *)hipModuleLaunchKernel;
    if (!strcmp(road, "mangled"))
        return (void *)mangled;
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
