// SPDX-License-Identifier: Apache-2.0
//
// What tests/unit/c/sim_image.c reads. The other files here were made of this one by nvcc 13.0:
//
//   nvcc -arch=sm_90 -cubin -o kernels.sm_90.cubin kernels.cu
//   nvcc -arch=sm_75 -cubin -DWIDE -o wide.sm_75.cubin kernels.cu
//   nvcc -arch=sm_90 -ptx -o kernels.ptx kernels.cu
//   for mode in none speed size: nvcc --compress-mode=$mode -gencode arch=compute_90,code=compute_90
//       -fatbin -o $mode.fatbin kernels.cu     (speed is LZ4, size is zstd)
#ifdef WIDE
struct wide {
    char bytes[4100];
};
extern "C" __global__ void wide_parameters(wide from, int *to) { *to = from.bytes[blockIdx.x]; }
#else
__device__ int counter = 7;
__device__ float table[16];
__constant__ float weights[3] = {1, 2, 3};

extern "C" __global__ void krex_axpy_f32(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i] + weights[i % 3];
}

extern "C" __global__ void __launch_bounds__(128) tiled(float *p, char c, short s, double d) {
    __shared__ float tile[256];
    tile[threadIdx.x] = p[threadIdx.x] + c + s + d;
    __syncthreads();
    p[threadIdx.x] = tile[255 - threadIdx.x];
    atomicAdd(&counter, 1);
    table[threadIdx.x % 16] = 1;
}
#endif
