/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with libcuda.so.1 among its libraries. It prints what it found as JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/types.h"

#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args) ret symbol params;
#include "cuda/api.def"
#undef KREX_CU_API

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result = (call);                                                                  \
        if (result) {                                                                              \
            fprintf(stderr, "%s gave %u\n", #call, result);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { N = 1 << 20, SPIN_NS = 2000000, AHEAD_NS = 50000000, BLOCK = 256 };

static const char image[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                            ".visible .entry krex_axpy_f32(.param .f32 a, .param .u64 x,\n"
                            "    .param .u64 y, .param .u64 n) { ret; }\n"
                            ".visible .entry krex_spin(.param .u64 ns) { ret; }\n";

static CUfunction kernel(CUmodule module, const char *name) {
    CUfunction function;
    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuFuncLoad(function));
    return function;
}

static int is_correct(const float *y) {
    for (int i = 0; i < N; i++)
        if (y[i] != 2.0f * (float)i + 1.0f)
            return 0;
    return 1;
}

static int axpy(CUmodule module, CUstream stream) {
    CUdeviceptr x, y;
    size_t bytes = N * sizeof(float), n = N;
    float *host, a = 2.0f;
    CHECK(cuMemAllocHost_v2((void **)&host, 2 * bytes));
    for (int i = 0; i < N; i++) {
        host[i] = (float)i;
        host[N + i] = 1.0f;
    }
    CHECK(cuMemAlloc_v2(&x, bytes));
    CHECK(cuMemAlloc_v2(&y, bytes));
    CHECK(cuMemcpyHtoDAsync_v2(x, host, bytes, stream));
    CHECK(cuMemcpyHtoDAsync_v2(y, host + N, bytes, stream));
    void *parameters[] = {&a, &x, &y, &n};
    CHECK(cuLaunchKernel(kernel(module, "krex_axpy_f32"), N / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream,
                         parameters, NULL));
    CHECK(cuMemcpyDtoHAsync_v2(host, y, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    return is_correct(host);
}

static void launch_spin(CUfunction function, CUstream stream, unsigned long long ns) {
    size_t bytes = sizeof ns;
    void *extra[] = {(void *)1, &ns, (void *)2, &bytes, NULL};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
}

/* How long the device says that a kernel of 2 ms took, behind one that lets all be there in time. */
static float spin(CUmodule module, CUstream stream) {
    CUevent before, after;
    CUfunction function = kernel(module, "krex_spin");
    float ms;
    CHECK(cuEventCreate(&before, 0));
    CHECK(cuEventCreate(&after, 0));
    launch_spin(function, stream, AHEAD_NS);
    CHECK(cuEventRecord(before, stream));
    launch_spin(function, stream, SPIN_NS);
    CHECK(cuEventRecord(after, stream));
    CHECK(cuEventSynchronize(after));
    CHECK(cuEventElapsedTime_v2(&ms, before, after));
    return ms;
}

int main(void) {
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuStreamCreate(&stream, 1));
    int correct = axpy(module, stream);
    float ms = spin(module, stream);
    CHECK(cuModuleUnload(module));
    CHECK(cuCtxDestroy_v2(context));
    printf("{\"correct\": %s, \"spin_ms\": %f}\n", correct ? "true" : "false", (double)ms);
    return 0;
}
