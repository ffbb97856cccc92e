/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of CUDA, or with -DHIP of HIP (hip/names.h), that does anything in any order: kernels,
 * copies, fills, events, captures, graphs, callbacks, waits for the host, modules, in several threads,
 * streams and contexts, and marks some regions in between.
 *
 *     random_program SEED THREADS OPERATIONS REGIONS
 *
 * OPERATIONS and REGIONS are a thread's. It says when it is ready, and starts at the end of a line.
 * Every result is checked, and every error ends the program with status 1. Prints one line of JSON:
 * how much was submitted, by how much it grew after its first quarter, and what was timed in each
 * region, and when, by CLOCK_MONOTONIC.
 */
#include <krex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef HIP
#include "hip/names.h"
#else
#include "cuda/types.h"

#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args) ret symbol params;
#include "cuda/api.def"
#undef KREX_CU_API
#endif

enum { WORDS = 4096, BYTES = 4 * WORDS, STREAMS = 3, LAUNCHES = 8 };

/* Two kernels of the simulated device: one that takes so many nanoseconds, one that computes. */
static const char image[] = ".version 7.0\n"
                            ".target sm_70\n"
                            ".address_size 64\n"
                            ".visible .entry krex_spin(.param .u64 ns) { ret; }\n"
                            ".visible .entry krex_axpy_f32(.param .u32 n, .param .f32 a,\n"
                            "    .param .u64 x, .param .u64 y) { ret; }\n";

static CUdevice device;
static CUcontext context;
static CUfunction spin, axpy;
static unsigned long operations, regions;
static atomic_ulong submissions;
static long settled_kb;

struct worker {
    pthread_t thread;
    unsigned seed, number;
    CUstream stream[STREAMS]; /* blocking, not blocking, and the legacy one */
    CUevent event, start, stop;
    CUdeviceptr x, y;
    uint32_t *word; /* pinned, for streams to wait for */
    atomic_uint called;
    float *pinned, *pageable;
    CUgraphExec graph;
    float expected; /* what every word of y is */
    char *timed;    /* JSON */
    size_t timed_size;
};

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check(CUresult result, const char *what, int line) {
    const char *name = "?";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "line %d: %s: %s (%u)\n", line, what, name, result);
    exit(1);
}

#define CHECK(call) check(call, #call, __LINE__)
#define SUBMIT(call) (CHECK(call), (void)atomic_fetch_add(&submissions, 1))

static unsigned choose(struct worker *w, unsigned below) { return rand_r(&w->seed) % below; }

static CUstream any_stream(struct worker *w) { return w->stream[choose(w, STREAMS)]; }

static void launch_spin(CUstream stream, unsigned long long ns) {
    void *parameters[] = {&ns};
    SUBMIT(cuLaunchKernel(spin, 4, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
}

/* y += a * x, where every word of x is 1. */
static void launch_axpy(struct worker *w, CUstream stream, float a) {
    unsigned n = WORDS;
    void *parameters[] = {&n, &a, &w->x, &w->y};
    CUlaunchConfig config = {WORDS / 128, 1, 1, 128, 1, 1, 0, stream, NULL, 0};
    if (choose(w, 2))
        SUBMIT(cuLaunchKernelEx(&config, axpy, parameters, NULL));
    else
        SUBMIT(cuLaunchKernel(axpy, WORDS / 128, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
}

static void synchronise(struct worker *w) {
    for (int i = 0; i < STREAMS; i++)
        CHECK(cuStreamSynchronize(w->stream[i]));
}

/* The program's order between its own streams: what comes next in `to` is behind all in `from`. */
static void order(struct worker *w, CUstream from, CUstream to) {
    SUBMIT(cuEventRecord(w->event, from));
    SUBMIT(cuStreamWaitEvent(to, w->event, 0));
}

static void verify(struct worker *w, const float *found) {
    for (int i = 0; i < WORDS; i++)
        if (found[i] != w->expected) {
            fprintf(stderr, "thread %u: word %d is %g, not %g\n", w->number, i, (double)found[i],
                    (double)w->expected);
            exit(1);
        }
}

static void fill(struct worker *w) {
    float value = (float)choose(w, 100);
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    synchronise(w);
    SUBMIT(cuMemsetD32Async(w->y, bits, WORDS, w->stream[0]));
    CHECK(cuStreamSynchronize(w->stream[0]));
    w->expected = value;
}

static void add(struct worker *w) {
    CUstream stream = any_stream(w);
    synchronise(w);
    launch_axpy(w, stream, 2);
    CHECK(cuStreamSynchronize(stream));
    w->expected += 2;
}

static void read_back(struct worker *w) {
    CUstream stream = any_stream(w);
    synchronise(w);
    if (choose(w, 3) == 0) {
        SUBMIT(cuMemcpyDtoH_v2(w->pageable, w->y, BYTES));
        verify(w, w->pageable);
    } else {
        SUBMIT(cuMemcpyDtoHAsync_v2(w->pinned, w->y, BYTES, stream));
        CHECK(cuStreamSynchronize(stream));
        verify(w, w->pinned);
    }
}

static void write_back(struct worker *w) {
    synchronise(w);
    for (int i = 0; i < WORDS; i++)
        w->pageable[i] = w->expected;
    if (choose(w, 2))
        SUBMIT(cuMemcpyHtoD_v2(w->y, w->pageable, BYTES));
    else
        SUBMIT(cuMemcpyHtoDAsync_v2(w->y, w->pageable, BYTES, w->stream[1]));
}

/* A graph of some kernels; one of them adds 1 to every word. */
static void capture(struct worker *w) {
    CUgraph graph;
    CUstream stream = w->stream[1];
    if (w->graph)
        CHECK(cuGraphExecDestroy(w->graph));
    CHECK(cuStreamBeginCapture_v2(stream, choose(w, 2) ? 1 : CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_spin(stream, 1000 + choose(w, 50000));
    launch_axpy(w, stream, 1);
    launch_spin(stream, 1000 + choose(w, 50000));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&w->graph, graph, 0));
    CHECK(cuGraphDestroy(graph));
}

static void launch_graph(struct worker *w) {
    synchronise(w);
    SUBMIT(cuGraphLaunch(w->graph, w->stream[1]));
    CHECK(cuStreamSynchronize(w->stream[1]));
    w->expected += 1;
}

static void allocate(struct worker *w) {
    CUdeviceptr more;
    CHECK(cuMemAlloc_v2(&more, 1 << (10 + choose(w, 12))));
    SUBMIT(cuMemsetD8_v2(more, 1, 1024));
    CHECK(cuMemFree_v2(more));
}

static void allocate_in_order(struct worker *w) {
    CUdeviceptr more;
    CUstream stream = w->stream[choose(w, 2)];
    SUBMIT(cuMemAllocAsync(&more, BYTES, stream));
    SUBMIT(cuMemsetD8Async(more, 1, BYTES, stream));
    SUBMIT(cuMemFreeAsync(more, stream));
}

static void note_call(void *called) { atomic_fetch_add((atomic_uint *)called, 1); }

static void call_back(struct worker *w) {
    CUstream stream = any_stream(w);
    unsigned before = atomic_load(&w->called), times = 1 + choose(w, 3);
    for (unsigned i = 0; i < times; i++)
        SUBMIT(cuLaunchHostFunc(stream, note_call, &w->called));
    CHECK(cuStreamSynchronize(stream));
    if (atomic_load(&w->called) != before + times) {
        fprintf(stderr, "thread %u: not called back\n", w->number);
        exit(1);
    }
}

/* The thread lets its stream go on without submitting anything. */
static void hold_up(struct worker *w) {
    CUstream stream = w->stream[choose(w, 2)];
    __atomic_store_n(w->word, 0, __ATOMIC_RELEASE);
    SUBMIT(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)w->word, 1, 1));
    usleep(choose(w, 2000));
    __atomic_store_n(w->word, 1, __ATOMIC_RELEASE);
    CHECK(cuStreamSynchronize(stream));
}

/* Code that is loaded at its first launch, and unloaded; in the thread's own default stream. */
static void load(struct worker *w) {
    CUmodule module;
    CUfunction function;
    unsigned long long ns = 1000 + choose(w, 50000);
    void *parameters[] = {&ns};
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuModuleGetFunction(&function, module, "krex_spin"));
    SUBMIT(cuLaunchKernel_ptsz(function, 4, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(cuModuleUnload(module));
}

/* A stream that is destroyed when its work may not be done yet. */
static void leave_stream(struct worker *w) {
    CUstream stream;
    CHECK(cuStreamCreate(&stream, 1));
    launch_spin(stream, 1000 + choose(w, 50000));
    CHECK(cuStreamDestroy_v2(stream));
}

/* A context of its own, which goes with its memory. */
static void make_context(void) {
    CUcontext other;
    CUdeviceptr memory;
    CHECK(cuCtxCreate_v2(&other, 0, device));
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    SUBMIT(cuMemsetD8_v2(memory, 1, BYTES));
    CHECK(cuCtxDestroy_v2(other));
    CHECK(cuCtxSetCurrent(context));
}

static void do_something_rare(struct worker *w) {
    switch (choose(w, 64)) {
    case 0:
        if (choose(w, 4) == 0)
            make_context();
        break;
    case 1 ... 6:
        capture(w);
        break;
    case 7 ... 14:
        load(w);
        break;
    case 15 ... 24:
        allocate(w);
        break;
    case 25 ... 34:
        hold_up(w);
        break;
    case 35 ... 44:
        leave_stream(w);
        break;
    case 45 ... 54:
        allocate_in_order(w);
        break;
    default:
        call_back(w);
        break;
    }
}

static void operate(struct worker *w) {
    switch (choose(w, 16)) {
    case 0:
        fill(w);
        break;
    case 1:
        add(w);
        break;
    case 2:
        read_back(w);
        break;
    case 3:
        write_back(w);
        break;
    case 4:
        launch_graph(w);
        break;
    case 5:
        order(w, any_stream(w), any_stream(w));
        break;
    case 6:
        CHECK(cuStreamSynchronize(any_stream(w)));
        break;
    case 7:
        do_something_rare(w);
        break;
    default:
        launch_spin(any_stream(w), 1000 + choose(w, 200000));
        break;
    }
}

/* What an unchanged harness does: some launches between two timed events. */
static void time_region(struct worker *w, unsigned long number) {
    unsigned long long ns = 20000 + choose(w, 500000);
    CUstream stream = w->stream[1];
    char name[64];
    long long begin, end;
    float ms;
    snprintf(name, sizeof name, "%u.%lu", w->number, number);
    synchronise(w);
    krex_begin(name);
    begin = now_ns();
    SUBMIT(cuEventRecord(w->start, stream));
    for (int i = 0; i < LAUNCHES; i++)
        launch_spin(stream, ns);
    SUBMIT(cuEventRecord(w->stop, stream));
    CHECK(cuEventSynchronize(w->stop));
    end = now_ns();
    krex_end();
    CHECK(cuEventElapsedTime(&ms, w->start, w->stop));
    w->timed_size += (size_t)sprintf(
        w->timed + w->timed_size,
        "%s{\"name\": \"%s\", \"ns\": %llu, \"ms\": %.6f, \"begin_ns\": %lld, \"end_ns\": %lld}",
        w->timed_size ? ", " : "", name, ns * LAUNCHES, (double)ms, begin, end);
}

static void prepare(struct worker *w) {
    float one = 1;
    unsigned bits;
    memcpy(&bits, &one, sizeof bits);
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&w->stream[0], 0));
    CHECK(cuStreamCreate(&w->stream[1], 1));
    w->stream[2] = NULL;
    CHECK(cuEventCreate(&w->event, 2));
    CHECK(cuEventCreate(&w->start, 0));
    CHECK(cuEventCreate(&w->stop, 0));
    CHECK(cuMemAlloc_v2(&w->x, BYTES));
    CHECK(cuMemAlloc_v2(&w->y, BYTES));
    CHECK(cuMemAllocHost_v2((void **)&w->pinned, BYTES));
    CHECK(cuMemAllocHost_v2((void **)&w->word, sizeof *w->word));
    w->pageable = malloc(BYTES);
    w->timed = calloc(regions + 1, 256);
    SUBMIT(cuMemsetD32_v2(w->x, bits, WORDS));
    SUBMIT(cuMemsetD32_v2(w->y, 0, WORDS));
    CHECK(cuStreamSynchronize(NULL));
    w->expected = 0;
    capture(w);
}

static long resident_kb(void) {
    char sizes[128] = ""; /* in pages: all, resident, ... */
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || !fgets(sizes, sizeof sizes, file))
        exit(1);
    fclose(file);
    char *resident;
    strtol(sizes, &resident, 10);
    return strtol(resident, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *work(void *worker) {
    struct worker *w = worker;
    prepare(w);
    for (unsigned long i = 0, r = 0; i < operations; i++) {
        operate(w);
        if (w->number == 0 && i == operations / 4)
            settled_kb = resident_kb();
        if (regions && i * regions / operations >= r)
            time_region(w, r++);
    }
    synchronise(w);
    read_back(w);
    return NULL;
}

int main(int argc, char **argv) {
    CUmodule module;
    struct worker workers[16];
    if (argc != 5)
        return fprintf(stderr, "random_program SEED THREADS OPERATIONS REGIONS\n"), 2;
    unsigned seed = (unsigned)strtoul(argv[1], NULL, 10),
             threads = (unsigned)strtoul(argv[2], NULL, 10);
    operations = strtoul(argv[3], NULL, 10);
    regions = strtoul(argv[4], NULL, 10);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuModuleGetFunction(&spin, module, "krex_spin"));
    CHECK(cuModuleGetFunction(&axpy, module, "krex_axpy_f32"));
    puts("ready");
    fflush(stdout);
    getchar();
    for (unsigned i = 0; i < threads && i < 16; i++) {
        workers[i] = (struct worker){.seed = seed * 1000 + i, .number = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < threads && i < 16; i++)
        pthread_join(workers[i].thread, NULL);
    printf("{\"pid\": %d, \"submissions\": %lu, \"grown_kb\": %ld, \"timed\": [", getpid(),
           atomic_load(&submissions), resident_kb() - settled_kb);
    for (unsigned i = 0, written = 0; i < threads && i < 16; i++)
        if (workers[i].timed_size)
            printf("%s%s", written++ ? ", " : "", workers[i].timed);
    printf("]}\n");
    return 0;
}
