# SPDX-License-Identifier: Apache-2.0
"""What each function of the HIP runtime does to a device: the decisions behind api.def.

Functions are named by their public names (without _spt, and not as C++ mangles them: all forms of a
function are of one kind).
"""

from collections.abc import Iterator

import api_kinds

# Kinds that no other vendor has.
OWN = {
    "SUBMIT_TIMED": "leaves work on a device, between two events if there are some",
    "HEAVY_NEW_STREAM": "the same: makes a stream, which the drain has to know",
    "INIT": "may be the call that initialises the runtime: heavy as long as nothing else was",
    "DEVICE": "makes another device the calling thread's: not gated, but has to be known",
    "RESET": "heavy: destroys the streams of a device, and what is captured there",
}

# The functions of each kind.
NAMES = {
    "SUBMIT": """
        hipLaunchKernel hipLaunchByPtr hipLaunchKernelExC hipDrvLaunchKernelEx
        hipLaunchKernelGGLImpl hipModuleLaunchKernel hipLaunchCooperativeKernel
        hipLaunchCooperativeKernelMultiDevice hipExtLaunchMultiKernelMultiDevice
        hipModuleLaunchCooperativeKernel hipModuleLaunchCooperativeKernelMultiDevice
        hipGraphLaunch hipGraphUpload
        hipMemcpyDtoDAsync hipMemcpyPeerAsync hipMemcpy3DPeerAsync
        hipMemsetAsync hipMemset2DAsync hipMemset3DAsync
        hipMemsetD8Async hipMemsetD16Async hipMemsetD32Async
        hipMemsetD2D8Async hipMemsetD2D16Async hipMemsetD2D32Async
        hipStreamWriteValue32 hipStreamWriteValue64 hipSignalExternalSemaphoresAsync
        hipFreeAsync hipMemMapArrayAsync
        hipMemAdvise hipMemAdvise_v2 hipMemPrefetchAsync hipMemPrefetchAsync_v2
        hipMemPrefetchBatchAsync hipMemDiscardBatchAsync hipMemDiscardAndPrefetchBatchAsync
        hipDrvMemDiscardBatchAsync hipDrvMemDiscardAndPrefetchBatchAsync hipStreamAttachMemAsync
        hipGraphicsMapResources hipGraphicsUnmapResources""",
    "SUBMIT_TIMED": "hipExtLaunchKernel hipExtModuleLaunchKernel hipHccModuleLaunchKernel",
    # Not all of these wait always; an Async copy does if its host memory is pageable.
    "SUBMIT_SYNC": """
        hipMemcpyAsync hipMemcpyHtoDAsync hipMemcpyDtoHAsync hipMemcpyHtoAAsync hipMemcpyAtoHAsync
        hipMemcpy2DAsync hipMemcpy2DToArrayAsync hipMemcpy2DFromArrayAsync hipMemcpyParam2DAsync
        hipMemcpy3DAsync hipDrvMemcpy3DAsync hipMemcpyToSymbolAsync hipMemcpyFromSymbolAsync
        hipMemcpyBatchAsync hipMemcpy3DBatchAsync
        hipMemcpy hipMemcpyWithStream hipMemcpyPeer hipMemcpyHtoD hipMemcpyDtoH hipMemcpyDtoD
        hipMemcpyDtoA hipMemcpyAtoD hipMemcpyHtoA hipMemcpyAtoH hipMemcpyAtoA
        hipMemcpy2D hipMemcpy2DToArray hipMemcpy2DFromArray hipMemcpy2DArrayToArray
        hipMemcpyToArray hipMemcpyFromArray hipMemcpyParam2D hipDrvMemcpy2DUnaligned
        hipMemcpy3D hipDrvMemcpy3D hipMemcpy3DPeer hipMemcpyToSymbol hipMemcpyFromSymbol
        hipMemset hipMemset2D hipMemset3D hipMemsetD8 hipMemsetD16 hipMemsetD32
        hipMemsetD2D8 hipMemsetD2D16 hipMemsetD2D32""",
    "SUBMIT_HOST": "hipLaunchHostFunc hipStreamAddCallback",
    "SUBMIT_WAIT": """
        hipStreamWaitValue32 hipStreamWaitValue64 hipStreamBatchMemOp
        hipWaitExternalSemaphoresAsync""",
    "SUBMIT_EVENT": "hipExecutionCtxRecordEvent hipExecutionCtxWaitEvent",
    "SUBMIT_RECORD": "hipEventRecord hipEventRecordWithFlags",
    "SUBMIT_JOIN": "hipStreamWaitEvent",
    "SUBMIT_ALLOC": "hipMallocAsync hipMallocFromPoolAsync",
    # What asks about a function may be what loads it. A free waits for the device.
    "HEAVY": """
        hipDeviceSetLimit hipDeviceEnablePeerAccess hipDeviceDisablePeerAccess
        hipCtxEnablePeerAccess hipCtxDisablePeerAccess
        hipGreenCtxCreate hipExecutionCtxDestroy
        hipModuleUnload hipModuleGetFunction hipModuleGetFunctionCount hipModuleGetGlobal
        hipModuleGetTexRef
        hipLibraryUnload hipLibraryGetKernel
        hipLibraryGetGlobal hipLibraryGetManaged
        hipKernelGetFunction hipKernelGetAttribute hipKernelSetAttribute
        hipFuncGetAttribute hipFuncGetAttributes hipFuncSetAttribute hipFuncSetCacheConfig
        hipFuncSetSharedMemConfig hipGetFuncBySymbol hipGetSymbolAddress hipGetSymbolSize
        hipGetTextureReference
        hipModuleOccupancyMaxPotentialBlockSize hipModuleOccupancyMaxPotentialBlockSizeWithFlags
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        hipOccupancyMaxPotentialBlockSize hipOccupancyMaxActiveBlocksPerMultiprocessor
        hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        hipOccupancyAvailableDynamicSMemPerBlock hipOccupancyMaxActiveClusters
        hipOccupancyMaxPotentialClusterSize
        hipFree hipFreeArray hipFreeMipmappedArray
        hipHostMalloc hipHostAlloc hipExtHostAlloc hipMallocHost hipMemAllocHost hipHostFree
        hipFreeHost hipHostRegister hipHostUnregister
        hipMallocArray hipMalloc3DArray hipMallocMipmappedArray hipArrayCreate hipArray3DCreate
        hipArrayDestroy hipMipmappedArrayCreate hipMipmappedArrayDestroy
        hipMemAddressReserve hipMemAddressFree hipMemRelease hipMemMap hipMemUnmap hipMemSetAccess
        hipMemImportFromShareableHandle
        hipMemPoolCreate hipMemPoolDestroy hipMemPoolTrimTo hipMemPoolSetAttribute
        hipMemPoolSetAccess hipMemPoolImportFromShareableHandle hipMemPoolImportPointer
        hipDeviceGraphMemTrim
        hipIpcOpenMemHandle hipIpcCloseMemHandle hipIpcOpenEventHandle
        hipImportExternalMemory hipDestroyExternalMemory hipExternalMemoryGetMappedBuffer
        hipExternalMemoryGetMappedMipmappedArray hipImportExternalSemaphore
        hipDestroyExternalSemaphore
        hipGraphInstantiate hipGraphInstantiateWithFlags hipGraphInstantiateWithParams
        hipGraphExecUpdate hipGraphExecDestroy
        hipGraphAddNode hipGraphAddKernelNode hipGraphAddMemAllocNode
        hipGraphNodeSetParams hipGraphKernelNodeSetParams hipGraphNodeSetEnabled
        hipGraphExecNodeSetParams hipGraphExecKernelNodeSetParams hipGraphExecMemcpyNodeSetParams
        hipGraphExecMemcpyNodeSetParams1D hipGraphExecMemcpyNodeSetParamsFromSymbol
        hipGraphExecMemcpyNodeSetParamsToSymbol hipGraphExecMemsetNodeSetParams
        hipGraphExecHostNodeSetParams hipGraphExecChildGraphNodeSetParams
        hipGraphExecEventRecordNodeSetEvent hipGraphExecEventWaitNodeSetEvent
        hipGraphExecExternalSemaphoresSignalNodeSetParams
        hipGraphExecExternalSemaphoresWaitNodeSetParams hipGraphExecBatchMemOpNodeSetParams
        hipDrvGraphExecMemcpyNodeSetParams hipDrvGraphExecMemsetNodeSetParams
        hipBindTexture hipBindTexture2D hipBindTextureToArray hipBindTextureToMipmappedArray
        hipUnbindTexture
        hipCreateTextureObject hipDestroyTextureObject hipTexObjectCreate hipTexObjectDestroy
        hipCreateSurfaceObject hipDestroySurfaceObject
        hipGraphicsGLRegisterBuffer hipGraphicsGLRegisterImage hipGraphicsUnregisterResource""",
    "HEAVY_LOAD": """
        hipModuleLoad hipModuleLoadData hipModuleLoadDataEx hipModuleLoadFatBinary
        hipLibraryLoadData hipLibraryLoadFromFile""",
    # It may bring a hardware queue: the kernel driver then stops all queues of the device, and
    # starts them again.
    "HEAVY_NEW_STREAM": """
        hipStreamCreate hipStreamCreateWithFlags hipStreamCreateWithPriority
        hipExtStreamCreateWithCUMask hipExecutionCtxStreamCreate""",
    "HEAVY_STREAM": "hipStreamDestroy",
    "HEAVY_ALLOC": """
        hipMalloc hipMallocManaged hipMallocPitch hipMemAllocPitch hipMalloc3D
        hipExtMallocWithFlags hipMemCreate""",
    "INIT": "hipInit hipGetDeviceCount",
    # A context is the device by another name: there is nothing to make, and nothing is destroyed.
    "DEVICE": """
        hipSetDevice hipCtxCreate hipCtxDestroy hipCtxSetCurrent hipCtxPushCurrent
        hipCtxPopCurrent""",
    "RESET": "hipDeviceReset hipDevicePrimaryCtxReset",
    "CAPTURE": "hipStreamBeginCapture hipStreamBeginCaptureToGraph",
    "CAPTURE_END": "hipStreamEndCapture",
    "RESOLVE": "hipGetProcAddress hipGetDriverEntryPoint",
    "TRACK_MADE": "hipEventCreate hipEventCreateWithFlags",
    "TRACK_GONE": "hipEventDestroy",
    "TRACK_READ": "hipEventElapsedTime",
    "TRACK_WAIT": """
        hipDeviceSynchronize hipCtxSynchronize hipExecutionCtxSynchronize hipStreamSynchronize
        hipEventSynchronize""",
    "NEVER": """
        hipStreamQuery hipEventQuery
        hipStreamIsCapturing hipStreamGetCaptureInfo hipStreamGetCaptureInfo_v2
        hipStreamUpdateCaptureDependencies hipThreadExchangeStreamCaptureMode""",
    # A registered fat binary is loaded by what uses it first; a call that is configured is made by
    # hipLaunchKernel or hipLaunchByPtr.
    "PASS": """
        __hipRegisterFatBinary __hipRegisterFunction __hipRegisterManagedVar __hipRegisterSurface
        __hipRegisterTexture __hipRegisterVar __hipUnregisterFatBinary __hipReportDevices
        __hipPushCallConfiguration __hipPopCallConfiguration __hipGetPCH
        hipConfigureCall hipSetupArgument hipApiName hipKernelNameRef hipKernelNameRefByPtr
        hipRegisterTracerCallback hipRegisterApiCallback hipRemoveApiCallback
        hipRegisterActivityCallback hipRemoveActivityCallback hipInitActivityCallback
        hipEnableActivityCallback hipGetCmdName

        hipDriverGetVersion hipRuntimeGetVersion hipGetErrorName hipGetErrorString
        hipDrvGetErrorName hipDrvGetErrorString hipGetLastError hipPeekAtLastError
        hipExtGetLastError hipExtEnableLogging hipExtDisableLogging hipExtSetLoggingParams
        hipProfilerStart hipProfilerStop

        hipDeviceGet hipGetDevice hipDeviceGetName hipDeviceGetUuid hipDeviceGetAttribute
        hipDeviceGetByPCIBusId hipDeviceGetPCIBusId hipDeviceTotalMem hipDeviceComputeCapability
        hipDeviceCanAccessPeer hipDeviceGetP2PAttribute hipDeviceGetTexture1DLinearMaxWidth
        hipDeviceGetLimit hipDeviceGetCacheConfig hipDeviceSetCacheConfig
        hipDeviceGetSharedMemConfig hipDeviceSetSharedMemConfig hipDeviceGetStreamPriorityRange
        hipDeviceGetDefaultMemPool hipDeviceGetMemPool hipDeviceSetMemPool
        hipDeviceGetGraphMemAttribute hipDeviceSetGraphMemAttribute
        hipGetDeviceProperties hipGetDevicePropertiesR0000 hipGetDevicePropertiesR0600
        hipChooseDevice hipChooseDeviceR0000 hipChooseDeviceR0600
        hipGetDeviceFlags hipSetDeviceFlags hipSetValidDevices hipExtGetLinkTypeAndHopCount

        hipCtxGetApiVersion hipCtxGetCacheConfig hipCtxSetCacheConfig hipCtxGetCurrent
        hipCtxGetDevice hipCtxGetFlags hipCtxGetSharedMemConfig hipCtxSetSharedMemConfig
        hipDevicePrimaryCtxGetState hipDevicePrimaryCtxRetain hipDevicePrimaryCtxRelease
        hipDevicePrimaryCtxSetFlags
        hipDeviceGetDevResource hipDeviceGetExecutionCtx hipDevResourceGenerateDesc
        hipDevSmResourceSplit hipDevSmResourceSplitByCount hipExecutionCtxGetDevResource
        hipExecutionCtxGetDevice hipExecutionCtxGetId hipStreamGetDevResource

        hipStreamGetDevice hipGetStreamDeviceId hipStreamGetFlags hipStreamGetPriority
        hipStreamGetId hipStreamGetAttribute hipStreamSetAttribute hipStreamCopyAttributes
        hipExtStreamGetCUMask

        hipMemGetInfo hipMemPtrGetInfo hipMemGetAddressRange hipMemRangeGetAttribute
        hipMemRangeGetAttributes hipPointerGetAttribute hipPointerGetAttributes
        hipDrvPointerGetAttributes hipPointerSetAttribute hipHostGetDevicePointer hipHostGetFlags
        hipMemGetAccess hipMemGetAllocationGranularity hipMemGetAllocationPropertiesFromHandle
        hipMemRetainAllocationHandle hipMemExportToShareableHandle hipMemGetHandleForAddressRange
        hipMemPoolGetAttribute hipMemPoolGetAccess hipMemPoolExportToShareableHandle
        hipMemPoolExportPointer hipMemGetDefaultMemPool hipMemGetMemPool hipMemSetMemPool
        hipIpcGetMemHandle hipIpcGetEventHandle
        hipArrayGetInfo hipArrayGetDescriptor hipArray3DGetDescriptor hipMipmappedArrayGetLevel
        hipGetMipmappedArrayLevel hipMipmappedArrayGetMemoryRequirements

        hipLinkCreate hipLinkAddData hipLinkAddFile hipLinkComplete hipLinkDestroy
        hipLibraryGetKernelCount hipLibraryEnumerateKernels hipKernelGetLibrary hipKernelGetName
        hipKernelGetParamInfo

        hipGraphCreate hipGraphDestroy hipGraphDestroyNode hipGraphClone hipGraphDebugDotPrint
        hipGraphAddDependencies hipGraphRemoveDependencies hipGraphGetEdges hipGraphGetNodes
        hipGraphGetRootNodes hipGraphAddEmptyNode hipGraphAddChildGraphNode
        hipGraphAddEventRecordNode hipGraphAddEventWaitNode
        hipGraphAddExternalSemaphoresSignalNode hipGraphAddExternalSemaphoresWaitNode
        hipGraphAddHostNode hipGraphAddMemFreeNode hipGraphAddMemcpyNode hipGraphAddMemcpyNode1D
        hipGraphAddMemcpyNodeFromSymbol hipGraphAddMemcpyNodeToSymbol hipGraphAddMemsetNode
        hipGraphAddBatchMemOpNode hipDrvGraphAddMemFreeNode hipDrvGraphAddMemcpyNode
        hipDrvGraphAddMemsetNode hipDrvGraphMemcpyNodeGetParams hipDrvGraphMemcpyNodeSetParams
        hipGraphBatchMemOpNodeGetParams hipGraphBatchMemOpNodeSetParams
        hipGraphChildGraphNodeGetGraph hipGraphEventRecordNodeGetEvent
        hipGraphEventRecordNodeSetEvent hipGraphEventWaitNodeGetEvent
        hipGraphEventWaitNodeSetEvent
        hipGraphExternalSemaphoresSignalNodeGetParams hipGraphExternalSemaphoresSignalNodeSetParams
        hipGraphExternalSemaphoresWaitNodeGetParams hipGraphExternalSemaphoresWaitNodeSetParams
        hipGraphHostNodeGetParams hipGraphHostNodeSetParams hipGraphKernelNodeCopyAttributes
        hipGraphKernelNodeGetAttribute hipGraphKernelNodeSetAttribute hipGraphKernelNodeGetParams
        hipGraphMemAllocNodeGetParams hipGraphMemFreeNodeGetParams hipGraphMemcpyNodeGetParams
        hipGraphMemcpyNodeSetParams hipGraphMemcpyNodeSetParams1D
        hipGraphMemcpyNodeSetParamsFromSymbol hipGraphMemcpyNodeSetParamsToSymbol
        hipGraphMemsetNodeGetParams hipGraphMemsetNodeSetParams hipGraphNodeFindInClone
        hipGraphNodeGetDependencies hipGraphNodeGetDependentNodes hipGraphNodeGetEnabled
        hipGraphNodeGetType hipGraphExecGetFlags
        hipUserObjectCreate hipUserObjectRetain hipUserObjectRelease hipGraphRetainUserObject
        hipGraphReleaseUserObject

        hipCreateChannelDesc hipGetChannelDesc hipGetTextureAlignmentOffset
        hipGetTextureObjectResourceDesc hipGetTextureObjectResourceViewDesc
        hipGetTextureObjectTextureDesc hipTexObjectGetResourceDesc hipTexObjectGetResourceViewDesc
        hipTexObjectGetTextureDesc
        hipTexRefGetAddress hipTexRefGetAddressMode hipTexRefGetArray hipTexRefGetBorderColor
        hipTexRefGetFilterMode hipTexRefGetFlags hipTexRefGetFormat hipTexRefGetMaxAnisotropy
        hipTexRefGetMipMappedArray hipTexRefGetMipmapFilterMode hipTexRefGetMipmapLevelBias
        hipTexRefGetMipmapLevelClamp hipTexRefSetAddress hipTexRefSetAddress2D
        hipTexRefSetAddressMode hipTexRefSetArray hipTexRefSetBorderColor hipTexRefSetFilterMode
        hipTexRefSetFlags hipTexRefSetFormat hipTexRefSetMaxAnisotropy
        hipTexRefSetMipmapFilterMode hipTexRefSetMipmapLevelBias hipTexRefSetMipmapLevelClamp
        hipTexRefSetMipmappedArray
        hipGLGetDevices hipGraphicsResourceGetMappedPointer hipGraphicsSubResourceGetMappedArray""",
}


KINDS = {kind: what for kind, what in (api_kinds.KINDS | OWN).items() if kind in NAMES}


def decisions() -> Iterator[tuple[str, str]]:
    """Each (function, kind); see api_kinds."""
    return api_kinds.decisions(NAMES)
