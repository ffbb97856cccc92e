# SPDX-License-Identifier: Apache-2.0
"""What each function of the CUDA driver API does to a device: the decisions behind api.def.

Functions are named by their public names (without _v2, _ptsz, _ptds: all forms of a function are of
one kind).
"""

from collections.abc import Iterator

import api_kinds

KINDS = api_kinds.KINDS

# The functions of each kind.
NAMES = {
    "SUBMIT": """
        cuLaunch cuLaunchGrid cuLaunchGridAsync cuLaunchKernel cuLaunchKernelEx
        cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice
        cuGraphLaunch cuGraphUpload
        cuMemcpyDtoDAsync cuMemcpyPeerAsync cuMemcpy3DPeerAsync cuFabricCpyBatchAsync
        cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async
        cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async
        cuStreamWriteValue32 cuStreamWriteValue64 cuSignalExternalSemaphoresAsync
        cuMemFreeAsync cuMemMapArrayAsync
        cuMemBatchDecompressAsync
        cuMemAdvise cuMemPrefetchAsync cuMemPrefetchBatchAsync cuMemDiscardBatchAsync
        cuMemDiscardAndPrefetchBatchAsync cuStreamAttachMemAsync
        cuGraphicsMapResources cuGraphicsUnmapResources
        cuGLMapBufferObjectAsync cuGLUnmapBufferObjectAsync
        cuEGLStreamConsumerConnect cuEGLStreamConsumerConnectWithFlags cuEGLStreamConsumerDisconnect
        cuEGLStreamProducerConnect cuEGLStreamProducerDisconnect
        cuEGLStreamConsumerReleaseFrame cuEGLStreamProducerPresentFrame""",
    # Not all of these wait always; an Async copy does if its host memory is pageable.
    "SUBMIT_SYNC": """
        cuMemcpyAsync cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyHtoAAsync cuMemcpyAtoHAsync
        cuMemcpy2DAsync cuMemcpy3DAsync cuMemcpyBatchAsync cuMemcpy3DBatchAsync
        cuMemcpyWithAttributesAsync cuMemcpy3DWithAttributesAsync
        cuMemcpy cuMemcpyPeer cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyDtoA cuMemcpyAtoD
        cuMemcpyHtoA cuMemcpyAtoH cuMemcpyAtoA cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy3D
        cuMemcpy3DPeer
        cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32
        cuFlushGPUDirectRDMAWrites
        cuGLMapBufferObject cuGLUnmapBufferObject
        cuEGLStreamConsumerAcquireFrame cuEGLStreamProducerReturnFrame""",
    "SUBMIT_HOST": "cuLaunchHostFunc cuStreamAddCallback",
    "SUBMIT_WAIT": """
        cuStreamWaitValue32 cuStreamWaitValue64 cuStreamBatchMemOp cuWaitExternalSemaphoresAsync""",
    "SUBMIT_RECORD": "cuEventRecord cuEventRecordWithFlags",
    "SUBMIT_JOIN": "cuStreamWaitEvent",
    "SUBMIT_EVENT": """
        cuCtxRecordEvent cuCtxWaitEvent cuGreenCtxRecordEvent cuGreenCtxWaitEvent""",
    # With lazy loading, what asks about a function may be what loads it, and a load may wait for
    # the device. So may freeing, unmapping, and what resizes a context's own memory.
    "HEAVY": """
        cuInit cuCtxSetLimit cuCtxEnablePeerAccess cuCtxDisablePeerAccess
        cuCtxResetPersistingL2Cache
        cuStreamCreate cuStreamCreateWithPriority cuGreenCtxStreamCreate
        cuModuleUnload
        cuModuleGetFunction cuModuleGetGlobal cuModuleGetTexRef cuModuleGetSurfRef
        cuLibraryUnload cuLibraryGetKernel
        cuLibraryGetModule
        cuLibraryGetGlobal cuLibraryGetManaged cuLibraryGetUnifiedFunction
        cuKernelGetFunction cuKernelGetAttribute cuKernelSetAttribute cuKernelSetCacheConfig
        cuFuncLoad cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig
        cuFuncSetSharedMemConfig
        cuOccupancyMaxActiveBlocksPerMultiprocessor
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags
        cuOccupancyAvailableDynamicSMemPerBlock cuOccupancyMaxPotentialClusterSize
        cuOccupancyMaxActiveClusters
        cuMemFree
        cuMemAllocHost cuMemHostAlloc cuMemFreeHost cuMemHostRegister cuMemHostUnregister
        cuArrayCreate cuArray3DCreate cuArrayDestroy cuMipmappedArrayCreate cuMipmappedArrayDestroy
        cuMemAddressReserve cuMemAddressFree cuMemRelease cuMemMap cuMemUnmap
        cuMemSetAccess
        cuMemImportFromShareableHandle
        cuMemPoolCreate cuMemPoolDestroy cuMemPoolTrimTo cuMemPoolSetAttribute cuMemPoolSetAccess
        cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuDeviceGraphMemTrim
        cuIpcOpenMemHandle cuIpcCloseMemHandle cuIpcOpenEventHandle
        cuMulticastCreate cuMulticastAddDevice cuMulticastBindMem cuMulticastBindAddr
        cuMulticastUnbind
        cuLogicalEndpointIdReserve cuLogicalEndpointIdRelease cuLogicalEndpointCreate
        cuLogicalEndpointAddDevice cuLogicalEndpointDestroy cuLogicalEndpointBindAddr
        cuLogicalEndpointBindMem cuLogicalEndpointUnbind cuLogicalEndpointImport
        cuImportExternalMemory cuDestroyExternalMemory cuExternalMemoryGetMappedBuffer
        cuExternalMemoryGetMappedMipmappedArray cuImportExternalSemaphore cuDestroyExternalSemaphore
        cuGraphInstantiate cuGraphInstantiateWithFlags cuGraphInstantiateWithParams
        cuGraphExecUpdate cuGraphExecDestroy cuGraphConditionalHandleCreate
        cuGraphAddNode cuGraphAddKernelNode cuGraphAddMemAllocNode
        cuGraphNodeSetParams cuGraphKernelNodeSetParams cuGraphNodeSetEnabled
        cuGraphExecNodeSetParams cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
        cuGraphExecMemsetNodeSetParams cuGraphExecHostNodeSetParams
        cuGraphExecChildGraphNodeSetParams
        cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
        cuGraphExecExternalSemaphoresSignalNodeSetParams
        cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecBatchMemOpNodeSetParams
        cuTexObjectCreate cuTexObjectDestroy cuSurfObjectCreate cuSurfObjectDestroy
        cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage cuGraphicsEGLRegisterImage
        cuGraphicsVDPAURegisterVideoSurface cuGraphicsVDPAURegisterOutputSurface
        cuGraphicsUnregisterResource cuGLRegisterBufferObject cuGLUnregisterBufferObject
        cuCheckpointProcessCheckpoint cuCheckpointProcessRestore cuCheckpointOperationComplete""",
    "HEAVY_LOAD": """
        cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary
        cuLibraryLoadData cuLibraryLoadFromFile""",
    "HEAVY_STREAM": "cuStreamDestroy",
    "HEAVY_ALLOC": "cuMemAlloc cuMemAllocPitch cuMemAllocManaged cuMemCreate",
    "SUBMIT_ALLOC": "cuMemAllocAsync cuMemAllocFromPoolAsync",
    "CONTEXT": """
        cuCtxCreate cuDevicePrimaryCtxRetain cuGreenCtxCreate cuCtxFromGreenCtx
        cuGLCtxCreate cuVDPAUCtxCreate""",
    "CONTEXT_END": """
        cuCtxDestroy cuCtxDetach cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset
        cuGreenCtxDestroy""",
    "CAPTURE": """
        cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamBeginRecaptureToGraph
        cuStreamBeginCaptureToCig""",
    "CAPTURE_END": "cuStreamEndCapture cuStreamEndCaptureToCig",
    "RESOLVE": "cuGetProcAddress",
    "TRACK_MADE": "cuEventCreate",
    "TRACK_GONE": "cuEventDestroy",
    "TRACK_READ": "cuEventElapsedTime",
    "TRACK_WAIT": "cuCtxSynchronize cuStreamSynchronize cuEventSynchronize",
    # Locking and unlocking another process is its suspension: nothing of it may wait for a gate.
    "NEVER": """
        cuStreamQuery cuEventQuery
        cuStreamIsCapturing cuStreamGetCaptureInfo cuStreamUpdateCaptureDependencies
        cuThreadExchangeStreamCaptureMode
        cuCheckpointProcessLock cuCheckpointProcessUnlock cuCheckpointProcessGetState""",
    # cuGetExportTable is passed through untouched, with the tables it gives out.
    "PASS": """
        cuGetErrorString cuGetErrorName cuDriverGetVersion cuGetExportTable
        cuProfilerInitialize cuProfilerStart cuProfilerStop
        cuLinkCreate cuLinkAddData cuLinkAddFile cuLinkComplete cuLinkDestroy

        cuDeviceGet cuDeviceGetCount cuDeviceGetName cuDeviceGetUuid cuDeviceGetLuid
        cuDeviceTotalMem
        cuDeviceGetAttribute cuDeviceGetProperties cuDeviceComputeCapability cuDeviceGetByPCIBusId
        cuDeviceGetPCIBusId cuDeviceGetTexture1DLinearMaxWidth cuDeviceGetNvSciSyncAttributes
        cuDeviceGetExecAffinitySupport cuDeviceGetHostAtomicCapabilities
        cuDeviceGetP2PAtomicCapabilities
        cuDeviceGetP2PAttribute cuDeviceCanAccessPeer cuDeviceGetFabricClusterUuid
        cuDeviceGetCliqueCount cuDeviceGetCliqueInfo
        cuDeviceSetMemPool cuDeviceGetMemPool cuDeviceGetDefaultMemPool
        cuDeviceGetGraphMemAttribute cuDeviceSetGraphMemAttribute
        cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification
        cuDeviceGetDevResource cuDevResourceGenerateDesc cuDevSmResourceSplit
        cuDevSmResourceSplitByCount
        cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxGetState

        cuCtxAttach cuCtxPushCurrent cuCtxPopCurrent cuCtxSetCurrent cuCtxGetCurrent cuCtxGetDevice
        cuCtxGetFlags cuCtxSetFlags cuCtxGetId cuCtxGetLimit cuCtxGetCacheConfig cuCtxSetCacheConfig
        cuCtxGetSharedMemConfig cuCtxSetSharedMemConfig cuCtxGetApiVersion
        cuCtxGetStreamPriorityRange
        cuCtxGetExecAffinity cuCtxGetDevResource cuGreenCtxGetDevResource cuGreenCtxGetId

        cuModuleGetLoadingMode cuModuleGetFunctionCount cuModuleEnumerateFunctions
        cuLibraryGetKernelCount cuLibraryEnumerateKernels
        cuKernelGetLibrary cuKernelGetName cuKernelGetParamInfo cuKernelGetParamCount
        cuFuncGetModule cuFuncGetName cuFuncGetParamInfo cuFuncGetParamCount cuFuncIsLoaded
        cuFuncSetBlockShape cuFuncSetSharedSize
        cuParamSetSize cuParamSeti cuParamSetf cuParamSetv cuParamSetTexRef

        cuMemGetInfo cuMemGetAddressRange cuMemGetAccess cuMemGetAllocationGranularity
        cuMemGetAllocationPropertiesFromHandle cuMemGetHandleForAddressRange cuMemGetLocationInfo
        cuMemGetDefaultMemPool cuMemGetMemPool cuMemSetMemPool
        cuMemHostGetDevicePointer cuMemHostGetFlags cuMemRetainAllocationHandle
        cuMemExportToShareableHandle cuMemRangeGetAttribute cuMemRangeGetAttributes
        cuMemPoolGetAttribute cuMemPoolGetAccess cuMemPoolExportToShareableHandle
        cuMemPoolExportPointer
        cuIpcGetMemHandle cuIpcGetEventHandle cuMulticastGetGranularity
        cuLogicalEndpointExport cuLogicalEndpointGetLimits cuLogicalEndpointQuery
        cuPointerGetAttribute cuPointerGetAttributes cuPointerSetAttribute
        cuArrayGetDescriptor cuArray3DGetDescriptor cuArrayGetPlane cuArrayGetSparseProperties
        cuArrayGetMemoryRequirements cuMipmappedArrayGetLevel cuMipmappedArrayGetSparseProperties
        cuMipmappedArrayGetMemoryRequirements

        cuStreamGetPriority cuStreamGetFlags cuStreamGetId cuStreamGetCtx cuStreamGetGreenCtx
        cuStreamGetDevice cuStreamGetDevResource cuStreamCopyAttributes cuStreamGetAttribute
        cuStreamSetAttribute
        cuEventCreateFromEGLSync

        cuGraphCreate cuGraphDestroy cuGraphDestroyNode cuGraphClone cuGraphDebugDotPrint
        cuGraphAddMemcpyNode cuGraphAddMemsetNode cuGraphAddHostNode cuGraphAddChildGraphNode
        cuGraphAddEmptyNode cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphAddMemFreeNode
        cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
        cuGraphAddBatchMemOpNode cuGraphAddDependencies cuGraphRemoveDependencies
        cuGraphKernelNodeGetParams cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute
        cuGraphKernelNodeSetAttribute cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
        cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphHostNodeGetParams
        cuGraphHostNodeSetParams cuGraphChildGraphNodeGetGraph cuGraphEventRecordNodeGetEvent
        cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent
        cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
        cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
        cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
        cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams
        cuGraphGetId cuGraphGetNodes cuGraphGetRootNodes cuGraphGetEdges cuGraphNodeFindInClone
        cuGraphNodeGetType cuGraphNodeGetParams cuGraphNodeGetEnabled cuGraphNodeGetLocalId
        cuGraphNodeGetToolsId cuGraphNodeGetContainingGraph cuGraphNodeGetDependencies
        cuGraphNodeGetDependentNodes cuGraphExecGetFlags cuGraphExecGetId
        cuUserObjectCreate cuUserObjectRetain cuUserObjectRelease cuGraphRetainUserObject
        cuGraphReleaseUserObject

        cuTexRefCreate cuTexRefDestroy cuTexRefSetArray cuTexRefSetMipmappedArray cuTexRefSetAddress
        cuTexRefSetAddress2D cuTexRefSetFormat cuTexRefSetAddressMode cuTexRefSetFilterMode
        cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp
        cuTexRefSetMaxAnisotropy cuTexRefSetBorderColor cuTexRefSetFlags cuTexRefGetAddress
        cuTexRefGetArray cuTexRefGetMipmappedArray cuTexRefGetAddressMode cuTexRefGetFilterMode
        cuTexRefGetFormat cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
        cuTexRefGetMipmapLevelClamp cuTexRefGetMaxAnisotropy cuTexRefGetBorderColor cuTexRefGetFlags
        cuSurfRefSetArray cuSurfRefGetArray
        cuTexObjectGetResourceDesc cuTexObjectGetTextureDesc cuTexObjectGetResourceViewDesc
        cuSurfObjectGetResourceDesc
        cuTensorMapEncodeTiled cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide
        cuTensorMapReplaceAddress cuTensorMapSetAllocationClass

        cuGraphicsSubResourceGetMappedArray cuGraphicsResourceGetMappedMipmappedArray
        cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedEglFrame
        cuGraphicsResourceSetMapFlags cuGLInit cuGLGetDevices cuGLSetBufferObjectMapFlags
        cuVDPAUGetDevice

        cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpSetAttribute
        cuCoredumpSetAttributeGlobal cuCoredumpRegisterStartCallback
        cuCoredumpRegisterCompleteCallback cuCoredumpDeregisterStartCallback
        cuCoredumpDeregisterCompleteCallback
        cuLogsRegisterCallback cuLogsUnregisterCallback cuLogsCurrent cuLogsDumpToFile
        cuLogsDumpToMemory cuCheckpointProcessGetRestoreThreadId""",
}


def decisions() -> Iterator[tuple[str, str]]:
    """Each (function, kind); see api_kinds."""
    return api_kinds.decisions(NAMES)
