/* SPDX-License-Identifier: Apache-2.0
 *
 * For ../random_program.c: what HIP calls the same. Where it differs in more than the name, it is
 * said here what the program means.
 */
#ifndef KREX_HIP_NAMES_H
#define KREX_HIP_NAMES_H

#include <stdlib.h>

#include "hip/types.h"

#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) ret symbol params;
#include "hip/api.def"
#undef KREX_HIP_API

#define CUresult hipError_t
#define CUDA_SUCCESS hipSuccess
#define CUdevice int
#define CUcontext hipCtx_t
#define CUmodule hipModule_t
#define CUfunction hipFunction_t
#define CUstream hipStream_t
#define CUevent hipEvent_t
#define CUdeviceptr hipDeviceptr_t
#define CUgraph hipGraph_t
#define CUgraphExec hipGraphExec_t
#define CUlaunchConfig HIP_LAUNCH_CONFIG
#define CU_STREAM_CAPTURE_MODE_RELAXED hipStreamCaptureModeRelaxed
#define CU_STREAM_PER_THREAD hipStreamPerThread

#define cuInit hipInit
#define cuDeviceGet hipDeviceGet
#define cuGetErrorName(result, name) (*(name) = hipGetErrorName(result))
#define cuModuleUnload hipModuleUnload
#define cuModuleGetFunction hipModuleGetFunction
#define cuLaunchKernel hipModuleLaunchKernel
#define cuLaunchKernelEx hipDrvLaunchKernelEx
#define cuLaunchHostFunc hipLaunchHostFunc
#define cuStreamCreate hipStreamCreateWithFlags
#define cuStreamDestroy_v2 hipStreamDestroy
#define cuStreamSynchronize hipStreamSynchronize
#define cuStreamWaitEvent hipStreamWaitEvent
#define cuStreamWaitValue32_v2(stream, address, value, flags)                                      \
    hipStreamWaitValue32(stream, address, value, flags, ~0U)
#define cuStreamBeginCapture_v2 hipStreamBeginCapture
#define cuStreamEndCapture hipStreamEndCapture
#define cuGraphInstantiateWithFlags hipGraphInstantiateWithFlags
#define cuGraphDestroy hipGraphDestroy
#define cuGraphExecDestroy hipGraphExecDestroy
#define cuGraphLaunch hipGraphLaunch
#define cuEventCreate hipEventCreateWithFlags
#define cuEventRecord hipEventRecord
#define cuEventSynchronize hipEventSynchronize
#define cuEventElapsedTime hipEventElapsedTime
#define cuMemAlloc_v2 hipMalloc
#define cuMemFree_v2 hipFree
#define cuMemAllocHost_v2(pointer, bytes) hipHostMalloc(pointer, bytes, 0)
#define cuMemAllocAsync hipMallocAsync
#define cuMemFreeAsync hipFreeAsync
#define cuMemcpyDtoH_v2 hipMemcpyDtoH
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuMemcpyHtoD_v2 hipMemcpyHtoD
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemsetD8_v2 hipMemsetD8
#define cuMemsetD8Async hipMemsetD8Async
#define cuMemsetD32_v2 hipMemsetD32
#define cuMemsetD32Async(address, bits, words, stream)                                             \
    hipMemsetD32Async(address, (int)(bits), words, stream)

/* By a form that takes the thread's own stream for none: there is none of this call. */
#define cuLaunchKernel_ptsz(f, gx, gy, gz, bx, by, bz, bytes, stream, parameters, extra)           \
    hipModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, bytes, hipStreamPerThread, parameters, extra)

/* Code for the simulated device comes from a file. */
#define cuModuleLoadData(module, image)                                                            \
    ((void)(image), hipModuleLoad(module, getenv("KREX_TEST_CODE")))

/* A context is the device. */
#define cuDevicePrimaryCtxRetain hipDevicePrimaryCtxRetain
#define cuCtxCreate_v2 hipCtxCreate
#define cuCtxDestroy_v2(other) (hipFree(memory), hipCtxDestroy(other))
#define cuCtxSetCurrent hipCtxSetCurrent

#endif
