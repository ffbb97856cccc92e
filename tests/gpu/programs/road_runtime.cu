// SPDX-License-Identifier: Apache-2.0
// The runtime API: a launch by <<<>>>, a copy, an event pair and a graph.
#include <cstdio>

#include "krex.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code));                          \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

enum { N = 1024 };

__global__ void add_one(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

int main() {
    float *x, found[N];
    cudaStream_t stream;
    cudaEvent_t start, stop;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    CHECK(cudaMalloc(&x, sizeof found));
    CHECK(cudaMemset(x, 0, sizeof found));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add_one<<<N / 256, 256, 0, stream>>>(x);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&made, graph, 0));
    krex_begin("runtime");
    CHECK(cudaEventRecord(start, stream));
    for (int i = 0; i < 10; i++)
        add_one<<<N / 256, 256, 0, stream>>>(x);
    for (int i = 0; i < 5; i++)
        CHECK(cudaGraphLaunch(made, stream));
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaStreamSynchronize(stream));
    krex_end();
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, x, sizeof found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        if (found[i] != 15) {
            fprintf(stderr, "the result is wrong\n");
            return 1;
        }
    return 0;
}
