/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver's types and values that api.def and the hooks need, so that building the shim takes
 * no CUDA headers. Names and layouts are the vendor's, as of the newest release that api.def names
 * (tests/unit/test_cuda_api.py compares them). Never include this next to cuda.h.
 */
#ifndef KREX_CUDA_TYPES_H
#define KREX_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Handles are distinct types so that a mix-up doesn't compile; nobody looks behind one. Structures
 * that are passed on by pointer are never looked into. An enum is an unsigned int to the ABI. */
#define KREX_CU_HANDLE(name) typedef struct krex_##name *name
#define KREX_CU_STRUCT(name) typedef struct krex_##name name
#define KREX_CU_ENUM(name) typedef unsigned int name

KREX_CU_HANDLE(CUarray);
KREX_CU_HANDLE(CUasyncCallbackHandle);
KREX_CU_HANDLE(CUcheckpointOperationHandle);
KREX_CU_HANDLE(CUcontext);
KREX_CU_HANDLE(CUcoredumpCallbackHandle);
KREX_CU_HANDLE(CUdevResourceDesc);
KREX_CU_HANDLE(CUeglStreamConnection);
KREX_CU_HANDLE(CUevent);
KREX_CU_HANDLE(CUexternalMemory);
KREX_CU_HANDLE(CUexternalSemaphore);
KREX_CU_HANDLE(CUfunction);
KREX_CU_HANDLE(CUgraph);
KREX_CU_HANDLE(CUgraphExec);
KREX_CU_HANDLE(CUgraphNode);
KREX_CU_HANDLE(CUgraphicsResource);
KREX_CU_HANDLE(CUgreenCtx);
KREX_CU_HANDLE(CUkernel);
KREX_CU_HANDLE(CUlibrary);
KREX_CU_HANDLE(CUlinkState);
KREX_CU_HANDLE(CUlogsCallbackHandle);
KREX_CU_HANDLE(CUmemoryPool);
KREX_CU_HANDLE(CUmipmappedArray);
KREX_CU_HANDLE(CUmodule);
KREX_CU_HANDLE(CUstream);
KREX_CU_HANDLE(CUsurfref);
KREX_CU_HANDLE(CUtexref);
KREX_CU_HANDLE(CUuserObject);

KREX_CU_STRUCT(CUDA_ARRAY3D_DESCRIPTOR);
KREX_CU_STRUCT(CUDA_ARRAY3D_DESCRIPTOR_v1);
KREX_CU_STRUCT(CUDA_ARRAY_DESCRIPTOR);
KREX_CU_STRUCT(CUDA_ARRAY_DESCRIPTOR_v1);
KREX_CU_STRUCT(CUDA_ARRAY_MEMORY_REQUIREMENTS);
KREX_CU_STRUCT(CUDA_ARRAY_SPARSE_PROPERTIES);
KREX_CU_STRUCT(CUDA_BATCH_MEM_OP_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
KREX_CU_STRUCT(CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
KREX_CU_STRUCT(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC);
KREX_CU_STRUCT(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC);
KREX_CU_STRUCT(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS);
KREX_CU_STRUCT(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS);
KREX_CU_STRUCT(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_EXT_SEM_WAIT_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_FABRIC_COPY_BATCH_OP);
KREX_CU_STRUCT(CUDA_GRAPH_INSTANTIATE_PARAMS);
KREX_CU_STRUCT(CUDA_HOST_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_KERNEL_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_KERNEL_NODE_PARAMS_v1);
KREX_CU_STRUCT(CUDA_MEMCPY2D);
KREX_CU_STRUCT(CUDA_MEMCPY2D_v1);
KREX_CU_STRUCT(CUDA_MEMCPY3D);
KREX_CU_STRUCT(CUDA_MEMCPY3D_BATCH_OP);
KREX_CU_STRUCT(CUDA_MEMCPY3D_PEER);
KREX_CU_STRUCT(CUDA_MEMCPY3D_v1);
KREX_CU_STRUCT(CUDA_MEMSET_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_MEM_ALLOC_NODE_PARAMS);
KREX_CU_STRUCT(CUDA_RESOURCE_DESC);
KREX_CU_STRUCT(CUDA_RESOURCE_VIEW_DESC);
KREX_CU_STRUCT(CUDA_TEXTURE_DESC);
KREX_CU_STRUCT(CU_DEV_SM_RESOURCE_GROUP_PARAMS);
KREX_CU_STRUCT(CUarrayMapInfo);
KREX_CU_STRUCT(CUasyncNotificationInfo);
KREX_CU_STRUCT(CUcheckpointCheckpointArgs);
KREX_CU_STRUCT(CUcheckpointLockArgs);
KREX_CU_STRUCT(CUcheckpointRestoreArgs);
KREX_CU_STRUCT(CUcheckpointUnlockArgs);
KREX_CU_STRUCT(CUcliqueInfo);
KREX_CU_STRUCT(CUctxCreateParams);
KREX_CU_STRUCT(CUdevResource);
KREX_CU_STRUCT(CUdevprop);
KREX_CU_STRUCT(CUexecAffinityParam);
KREX_CU_STRUCT(CUgraphEdgeData);
KREX_CU_STRUCT(CUgraphExecUpdateResultInfo);
KREX_CU_STRUCT(CUgraphNodeParams);
KREX_CU_STRUCT(CUkernelNodeAttrValue);
KREX_CU_STRUCT(CUlaunchAttribute);
KREX_CU_STRUCT(CUlogicalEndpointProp);
KREX_CU_STRUCT(CUmemAccessDesc);
KREX_CU_STRUCT(CUmemAllocationProp);
KREX_CU_STRUCT(CUmemDecompressParams);
KREX_CU_STRUCT(CUmemPoolProps);
KREX_CU_STRUCT(CUmemPoolPtrExportData);
KREX_CU_STRUCT(CUmemcpyAttributes);
KREX_CU_STRUCT(CUmulticastObjectProp);
KREX_CU_STRUCT(CUstreamAttrValue);
KREX_CU_STRUCT(CUstreamBatchMemOpParams);
KREX_CU_STRUCT(CUstreamCigCaptureParams);
KREX_CU_STRUCT(CUtensorMap);

KREX_CU_ENUM(CUGLDeviceList);
KREX_CU_ENUM(CUaddress_mode);
KREX_CU_ENUM(CUarray_format);
KREX_CU_ENUM(CUatomicOperation);
KREX_CU_ENUM(CUcoredumpSettings);
KREX_CU_ENUM(CUdevResourceType);
KREX_CU_ENUM(CUdevice_P2PAttribute);
KREX_CU_ENUM(CUdevice_attribute);
KREX_CU_ENUM(CUdriverProcAddressQueryResult);
KREX_CU_ENUM(CUexecAffinityType);
KREX_CU_ENUM(CUfilter_mode);
KREX_CU_ENUM(CUflushGPUDirectRDMAWritesScope);
KREX_CU_ENUM(CUflushGPUDirectRDMAWritesTarget);
KREX_CU_ENUM(CUfunc_cache);
KREX_CU_ENUM(CUfunctionLoadingState);
KREX_CU_ENUM(CUfunction_attribute);
KREX_CU_ENUM(CUgraphExecUpdateResult);
KREX_CU_ENUM(CUgraphMem_attribute);
KREX_CU_ENUM(CUgraphNodeType);
KREX_CU_ENUM(CUgraphRecaptureStatus);
KREX_CU_ENUM(CUjitInputType);
KREX_CU_ENUM(CUjit_option);
KREX_CU_ENUM(CUkernelNodeAttrID);
KREX_CU_ENUM(CUlibraryOption);
KREX_CU_ENUM(CUlimit);
KREX_CU_ENUM(CUlogLevel);
KREX_CU_ENUM(CUlogicalEndpointIpcHandleType);
KREX_CU_ENUM(CUmemAccess_flags);
KREX_CU_ENUM(CUmemAllocationGranularity_flags);
KREX_CU_ENUM(CUmemAllocationHandleType);
KREX_CU_ENUM(CUmemAllocationType);
KREX_CU_ENUM(CUmemPool_attribute);
KREX_CU_ENUM(CUmemRangeHandleType);
KREX_CU_ENUM(CUmem_advise);
KREX_CU_ENUM(CUmem_range_attribute);
KREX_CU_ENUM(CUmoduleLoadingMode);
KREX_CU_ENUM(CUmulticastGranularity_flags);
KREX_CU_ENUM(CUoutput_mode);
KREX_CU_ENUM(CUpointer_attribute);
KREX_CU_ENUM(CUprocessState);
KREX_CU_ENUM(CUresult);
KREX_CU_ENUM(CUsharedconfig);
KREX_CU_ENUM(CUstreamAttrID);
KREX_CU_ENUM(CUstreamCaptureMode);
KREX_CU_ENUM(CUstreamCaptureStatus);
KREX_CU_ENUM(CUtensorMapAllocClass);
KREX_CU_ENUM(CUtensorMapDataType);
KREX_CU_ENUM(CUtensorMapFloatOOBfill);
KREX_CU_ENUM(CUtensorMapIm2ColWideMode);
KREX_CU_ENUM(CUtensorMapInterleave);
KREX_CU_ENUM(CUtensorMapL2promotion);
KREX_CU_ENUM(CUtensorMapSwizzle);

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1; /* before CUDA 3.2 */
typedef cuuint64_t CUgraphConditionalHandle;
typedef unsigned int CUlogIterator;
typedef cuuint32_t CUlogicalEndpointId;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef unsigned long long CUsurfObject;
typedef unsigned long long CUtexObject;

/* Structures that are passed by value, or that have something the hooks want. */
typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    char reserved[64];
} CUipcEventHandle;

typedef struct {
    char reserved[64];
} CUipcMemHandle;

typedef struct {
    unsigned int type;
    int id;
} CUmemLocation;

typedef struct {
    uint64_t opaque[8];
} CUeglFrame;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

/* cuLaunchCooperativeKernelMultiDevice takes one for each device. */
typedef struct {
    CUfunction function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

/* Callbacks. */
typedef void (*CUasyncCallback)(CUasyncNotificationInfo *, void *, CUasyncCallbackHandle);
typedef void (*CUcoredumpStatusCallback)(void *, int, CUdevice);
typedef CUresult (*CUgraphRecaptureCallback)(void *, CUgraphNode, const CUgraphNodeParams *,
                                             const CUgraphNodeParams *, CUgraphRecaptureStatus);
typedef void (*CUhostFn)(void *);
typedef void (*CUlogsCallback)(void *, CUlogLevel, char *, size_t);
typedef size_t (*CUoccupancyB2DSize)(int);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);

/* GL, EGL and VDPAU sharing. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
typedef int32_t EGLint;
typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;
typedef uint32_t VdpDevice;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpVideoSurface;
typedef int VdpGetProcAddress(VdpDevice, uint32_t, void **);

/* What cuGetProcAddress takes as flags, and says. */
#define CU_GET_PROC_ADDRESS_DEFAULT 0
#define CU_GET_PROC_ADDRESS_LEGACY_STREAM 1
#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2
#define CU_GET_PROC_ADDRESS_SUCCESS 0
#define CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND 1
#define CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT 2

#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NOT_INITIALIZED 3
#define CUDA_ERROR_DEINITIALIZED 4
#define CUDA_ERROR_NO_DEVICE 100
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_NOT_READY 600
#define CUDA_ERROR_NOT_SUPPORTED 801
#define CUDA_ERROR_STREAM_CAPTURE_IMPLICIT 906

#define CU_STREAM_CAPTURE_STATUS_NONE 0
#define CU_STREAM_CAPTURE_STATUS_ACTIVE 1
#define CU_STREAM_CAPTURE_STATUS_INVALIDATED 2
#define CU_STREAM_CAPTURE_MODE_RELAXED 2

#define CU_STREAM_NON_BLOCKING 1u
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

/* api.def's: the stream of a call that has none, and the one in a structure, which may be missing. */
#define KREX_CU_NO_STREAM ((CUstream) ~(uintptr_t)0)
#define KREX_CU_STREAM_OF(config) ((config) ? (config)->hStream : KREX_CU_NO_STREAM)

#undef KREX_CU_HANDLE
#undef KREX_CU_STRUCT
#undef KREX_CU_ENUM

#endif
