/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP runtime's types and values that api.def and the hooks need, so that building the shim takes no
 * HIP headers. Names and layouts are the vendor's, as of the newest release that api.def names
 * (tests/unit/test_hip_api.py compares them). Never include this next to hip_runtime_api.h.
 */
#ifndef KREX_HIP_TYPES_H
#define KREX_HIP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handles are distinct types so that a mix-up doesn't compile; nobody looks behind one. Structures
 * that are passed on by pointer are never looked into. An enum is an unsigned int to the ABI. */
#define KREX_HIP_HANDLE(name) typedef struct krex_##name *name
#define KREX_HIP_STRUCT(name) typedef struct krex_##name name
#define KREX_HIP_ENUM(name) typedef unsigned int name

KREX_HIP_HANDLE(hipArray_const_t);
KREX_HIP_HANDLE(hipArray_t);
KREX_HIP_HANDLE(hipCtx_t);
KREX_HIP_HANDLE(hipDevResourceDesc_t);
KREX_HIP_HANDLE(hipEvent_t);
KREX_HIP_HANDLE(hipExecutionCtx_t);
KREX_HIP_HANDLE(hipExternalMemory_t);
KREX_HIP_HANDLE(hipExternalSemaphore_t);
KREX_HIP_HANDLE(hipFunction_t);
KREX_HIP_HANDLE(hipGraphExec_t);
KREX_HIP_HANDLE(hipGraphNode_t);
KREX_HIP_HANDLE(hipGraph_t);
KREX_HIP_HANDLE(hipGraphicsResource_t);
KREX_HIP_HANDLE(hipKernel_t);
KREX_HIP_HANDLE(hipLibrary_t);
KREX_HIP_HANDLE(hipLinkState_t);
KREX_HIP_HANDLE(hipMemGenericAllocationHandle_t);
KREX_HIP_HANDLE(hipMemPool_t);
KREX_HIP_HANDLE(hipMipmappedArray_const_t);
KREX_HIP_HANDLE(hipMipmappedArray_t);
KREX_HIP_HANDLE(hipModule_t);
KREX_HIP_HANDLE(hipStream_t);
KREX_HIP_HANDLE(hipSurfaceObject_t);
KREX_HIP_HANDLE(hipTextureObject_t);
KREX_HIP_HANDLE(hipUserObject_t);

KREX_HIP_STRUCT(HIP_ARRAY3D_DESCRIPTOR);
KREX_HIP_STRUCT(HIP_ARRAY_DESCRIPTOR);
KREX_HIP_STRUCT(HIP_MEMCPY3D);
KREX_HIP_STRUCT(HIP_RESOURCE_DESC);
KREX_HIP_STRUCT(HIP_RESOURCE_VIEW_DESC);
KREX_HIP_STRUCT(HIP_TEXTURE_DESC);
KREX_HIP_STRUCT(hipArrayMapInfo);
KREX_HIP_STRUCT(hipArrayMemoryRequirements);
KREX_HIP_STRUCT(hipBatchMemOpNodeParams);
KREX_HIP_STRUCT(hipDevResource_st);
KREX_HIP_STRUCT(hipDevSmResourceGroupParams_st);
KREX_HIP_STRUCT(hipDeviceProp_t);
KREX_HIP_STRUCT(hipDeviceProp_tR0000);
KREX_HIP_STRUCT(hipDeviceProp_tR0600);
KREX_HIP_STRUCT(hipExternalMemoryBufferDesc);
KREX_HIP_STRUCT(hipExternalMemoryHandleDesc);
KREX_HIP_STRUCT(hipExternalMemoryMipmappedArrayDesc);
KREX_HIP_STRUCT(hipExternalSemaphoreHandleDesc);
KREX_HIP_STRUCT(hipExternalSemaphoreSignalNodeParams);
KREX_HIP_STRUCT(hipExternalSemaphoreSignalParams);
KREX_HIP_STRUCT(hipExternalSemaphoreWaitNodeParams);
KREX_HIP_STRUCT(hipExternalSemaphoreWaitParams);
KREX_HIP_STRUCT(hipFuncAttributes);
KREX_HIP_STRUCT(hipGraphEdgeData);
KREX_HIP_STRUCT(hipGraphInstantiateParams);
KREX_HIP_STRUCT(hipGraphNodeParams);
KREX_HIP_STRUCT(hipGraphicsResource);
KREX_HIP_STRUCT(hipHostNodeParams);
KREX_HIP_STRUCT(hipKernelNodeAttrValue);
KREX_HIP_STRUCT(hipKernelNodeParams);
KREX_HIP_STRUCT(hipMemAccessDesc);
KREX_HIP_STRUCT(hipMemAllocNodeParams);
KREX_HIP_STRUCT(hipMemAllocationProp);
KREX_HIP_STRUCT(hipMemPoolProps);
KREX_HIP_STRUCT(hipMemPoolPtrExportData);
KREX_HIP_STRUCT(hipMemcpy3DBatchOp);
KREX_HIP_STRUCT(hipMemcpy3DParms);
KREX_HIP_STRUCT(hipMemcpy3DPeerParms);
KREX_HIP_STRUCT(hipMemcpyAttributes);
KREX_HIP_STRUCT(hipMemsetParams);
KREX_HIP_STRUCT(hipMipmappedArray);
KREX_HIP_STRUCT(hipPointerAttribute_t);
KREX_HIP_STRUCT(hipResourceDesc);
KREX_HIP_STRUCT(hipResourceViewDesc);
KREX_HIP_STRUCT(hipStreamAttrValue);
KREX_HIP_STRUCT(hipStreamBatchMemOpParams);
KREX_HIP_STRUCT(hipTextureDesc);
KREX_HIP_STRUCT(hip_Memcpy2D);
KREX_HIP_STRUCT(textureReference);

KREX_HIP_ENUM(hipArray_Format);
KREX_HIP_ENUM(hipChannelFormatKind);
KREX_HIP_ENUM(hipDevResourceType);
KREX_HIP_ENUM(hipDeviceAttribute_t);
KREX_HIP_ENUM(hipDeviceP2PAttr);
KREX_HIP_ENUM(hipDriverEntryPointQueryResult);
KREX_HIP_ENUM(hipDriverProcAddressQueryResult);
KREX_HIP_ENUM(hipError_t);
KREX_HIP_ENUM(hipFuncAttribute);
KREX_HIP_ENUM(hipFuncCache_t);
KREX_HIP_ENUM(hipFunction_attribute);
KREX_HIP_ENUM(hipGLDeviceList);
KREX_HIP_ENUM(hipGraphExecUpdateResult);
KREX_HIP_ENUM(hipGraphMemAttributeType);
KREX_HIP_ENUM(hipGraphNodeType);
KREX_HIP_ENUM(hipJitInputType);
KREX_HIP_ENUM(hipJitOption);
KREX_HIP_ENUM(hipKernelNodeAttrID);
KREX_HIP_ENUM(hipLibraryOption);
KREX_HIP_ENUM(hipLimit_t);
KREX_HIP_ENUM(hipMemAccessFlags);
KREX_HIP_ENUM(hipMemAllocationGranularity_flags);
KREX_HIP_ENUM(hipMemAllocationHandleType);
KREX_HIP_ENUM(hipMemAllocationType);
KREX_HIP_ENUM(hipMemPoolAttr);
KREX_HIP_ENUM(hipMemRangeAttribute);
KREX_HIP_ENUM(hipMemRangeHandleType);
KREX_HIP_ENUM(hipMemcpyKind);
KREX_HIP_ENUM(hipMemoryAdvise);
KREX_HIP_ENUM(hipPointer_attribute);
KREX_HIP_ENUM(hipSharedMemConfig);
KREX_HIP_ENUM(hipStreamAttrID);
KREX_HIP_ENUM(hipStreamCaptureMode);
KREX_HIP_ENUM(hipStreamCaptureStatus);
KREX_HIP_ENUM(hipTextureAddressMode);
KREX_HIP_ENUM(hipTextureFilterMode);

typedef unsigned int GLenum;
typedef unsigned int GLuint;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;

/* Passed or returned by value. */

typedef struct {
    uint32_t x, y, z;
} dim3;

typedef dim3 uint3;

typedef struct {
    int x, y, z, w;
    hipChannelFormatKind f;
} hipChannelFormatDesc;

typedef struct {
    size_t width, height, depth;
} hipExtent;

typedef struct {
    char reserved[64];
} hipIpcEventHandle_t;

typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;

typedef struct {
    unsigned int type;
    int id;
} hipMemLocation;

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct {
    char bytes[16];
} hipUUID;

/* Those that say a stream. */

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    hipStream_t hStream;
    void *attrs;
    unsigned int numAttrs;
} HIP_LAUNCH_CONFIG;

typedef struct {
    hipFunction_t function;
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    hipStream_t hStream;
    void **kernelParams;
} hipFunctionLaunchParams;

typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    void *attrs;
    unsigned int numAttrs;
} hipLaunchConfig_t;

typedef hipLaunchConfig_t hipLaunchConfig_st;

typedef struct {
    void *func;
    dim3 gridDim, blockDim;
    void **args;
    size_t sharedMem;
    hipStream_t stream;
} hipLaunchParams;

typedef void (*hipHostFn_t)(void *userData);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *userData);

#define hipSuccess 0
#define hipErrorInvalidValue 1
#define hipErrorOutOfMemory 2
#define hipErrorNoDevice 100
#define hipErrorECCNotCorrectable 214
#define hipErrorNotReady 600
#define hipErrorIllegalAddress 700
#define hipErrorLaunchTimeOut 702
#define hipErrorContextIsDestroyed 709
#define hipErrorAssert 710
#define hipErrorLaunchFailure 719
#define hipErrorNotSupported 801
#define hipErrorStreamCaptureUnsupported 900
#define hipErrorStreamCaptureImplicit 906
#define hipErrorStreamCaptureWrongThread 908

#define hipStreamCaptureModeRelaxed 2
#define hipStreamCaptureStatusNone 0

#define hipStreamNonBlocking 1
#define hipStreamLegacy ((hipStream_t)0x1)
#define hipStreamPerThread ((hipStream_t)0x2)

/* No vendor's: what api.def says of a call without a stream, and of one on the null stream. */
#define KREX_HIP_NO_STREAM ((hipStream_t)UINTPTR_MAX)
#define KREX_HIP_NULL_STREAM ((hipStream_t)0)
/* The stream of a launch, of several the first one's. A program may pass NULL. */
#define KREX_HIP_STREAM_OF(config, field) ((config) ? (config)->field : KREX_HIP_NO_STREAM)

#endif
