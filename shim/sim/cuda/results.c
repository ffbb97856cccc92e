/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of all results, with what they mean here.
 */
#include "face.h"

static const struct {
    CUresult code;
    const char *name, *text;
} known[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "an argument is not valid"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED",
     "the driver is not initialized: cuInit has not been called in this process"},
    {4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
    {5, "CUDA_ERROR_PROFILER_DISABLED", "the profiler is disabled"},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "the profiler is not initialized"},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "the profiler is running already"},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "the profiler is stopped already"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is not available now"},
    {47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL", "out of multicast resources"},
    {100, "CUDA_ERROR_NO_DEVICE", "no device is visible"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "no such device"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the device has no licence"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "the image of a kernel is not valid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "no context is current, or it is not valid"},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "the context is current already"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "the resource is mapped already"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no code for this device"},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", "the resource is acquired already"},
    {211, "CUDA_ERROR_NOT_MAPPED", "the resource is not mapped"},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "the resource is not mapped as an array"},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "the resource is not mapped as a pointer"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "the memory has an error that ECC can't correct"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "the device does not have that limit"},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the context is bound to another thread"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "the devices can't reach each other"},
    {218, "CUDA_ERROR_INVALID_PTX", "the PTX does not compile"},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "the graphics context is not valid"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "NVLink has an error that can't be corrected"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "there is no PTX compiler"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the PTX is of a version that the driver does not know"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX compilation is disabled"},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY",
     "the device does not have that execution affinity"},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
     "the code synchronizes on the device, which is not supported"},
    {226, "CUDA_ERROR_CONTAINED", "a contained error: the work has to be started again"},
    {227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "the loader is too old"},
    {300, "CUDA_ERROR_INVALID_SOURCE", "the source of a kernel is not valid"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "no such file"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a shared object lacks a symbol"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared object can't be initialized"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "a handle is not valid"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "a resource is not in the state that the call needs"},
    {402, "CUDA_ERROR_LOSSY_QUERY", "the answer would leave something out"},
    {500, "CUDA_ERROR_NOT_FOUND", "no such symbol"},
    {600, "CUDA_ERROR_NOT_READY", "not done yet"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel used an address that is not its to use"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch needs more resources than there are"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel took too long and was ended"},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "the launch mixes modes of texturing"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled already"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is in use"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the current context has been destroyed"},
    {710, "CUDA_ERROR_ASSERT", "an assertion in a kernel failed"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "a stack error in a kernel"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction in a kernel"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel used an address that is not aligned"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "an address is of another address space"},
    {718, "CUDA_ERROR_INVALID_PC", "a kernel jumped to no code"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "the blocks of a cooperative launch don't fit on the device at once"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "a kernel did not free its tensor memory"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "the driver and the kernel module are of different versions"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "forward compatibility is not supported on this device"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "no connection to the MPS control daemon"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", "the MPS server does not answer"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server is not ready"},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the MPS server has too many clients"},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the MPS server has too many connections"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS server ended this client"},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "launches from the device are not supported"},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "launches from the device are of another version"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream captures"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture is invalid since an earlier error"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would become one"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a stream of the capture was not joined"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "work of a capture would depend on work outside"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the legacy stream would depend on a capture"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture began in another thread"},
    {909, "CUDA_ERROR_TIMEOUT", "the wait took too long"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph differs too much from what was instantiated"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "a device of another kind failed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "the size of a cluster is not valid"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "the function is not loaded"},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "the type of a resource is not valid"},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "the resources don't go together"},
    {916, "CUDA_ERROR_KEY_ROTATION", "a key is being changed"},
    {917, "CUDA_ERROR_STREAM_DETACHED", "the stream has lost its context"},
    {918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "the graph can't be captured anew"},
    {919, "CUDA_ERROR_FABRIC_NOT_READY", "the fabric is not ready"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error: the device is lost"},
};

enum { KNOWN = sizeof known / sizeof *known };

CUresult cuGetErrorName(CUresult error, const char **pStr) {
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    for (int i = 0; i < KNOWN; i++)
        if (known[i].code == error)
            *pStr = known[i].name;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr) {
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    for (int i = 0; i < KNOWN; i++)
        if (known[i].code == error)
            *pStr = known[i].text;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
