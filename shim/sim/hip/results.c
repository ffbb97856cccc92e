/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of all results, with what they mean here.
 */
#include "face.h"

static const struct known {
    hipError_t code;
    const char *name, *text;
} known[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "an argument is not valid"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "the runtime is not initialized in this process"},
    {4, "hipErrorDeinitialized", "the driver is shutting down"},
    {5, "hipErrorProfilerDisabled", "the profiler is disabled"},
    {6, "hipErrorProfilerNotInitialized", "the profiler is not initialized"},
    {7, "hipErrorProfilerAlreadyStarted", "the profiler is running already"},
    {8, "hipErrorProfilerAlreadyStopped", "the profiler is stopped already"},
    {9, "hipErrorInvalidConfiguration", "the dimensions of a launch are not valid"},
    {12, "hipErrorInvalidPitchValue", "a pitch is not valid"},
    {13, "hipErrorInvalidSymbol", "no such variable was registered"},
    {17, "hipErrorInvalidDevicePointer", "an address is not the device's"},
    {21, "hipErrorInvalidMemcpyDirection", "the direction of a copy is not valid"},
    {35, "hipErrorInsufficientDriver", "the driver is older than the runtime"},
    {52, "hipErrorMissingConfiguration", "no dimensions were given for the launch"},
    {53, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {98, "hipErrorInvalidDeviceFunction", "no such kernel was registered"},
    {100, "hipErrorNoDevice", "no device is visible"},
    {101, "hipErrorInvalidDevice", "no such device"},
    {200, "hipErrorInvalidImage", "the image of a kernel is not valid"},
    {201, "hipErrorInvalidContext", "no context is current, or it is not valid"},
    {202, "hipErrorContextAlreadyCurrent", "the context is current already"},
    {205, "hipErrorMapFailed", "mapping failed"},
    {206, "hipErrorUnmapFailed", "unmapping failed"},
    {207, "hipErrorArrayIsMapped", "the array is mapped"},
    {208, "hipErrorAlreadyMapped", "the resource is mapped already"},
    {209, "hipErrorNoBinaryForGpu", "the image has no code for this device"},
    {210, "hipErrorAlreadyAcquired", "the resource is acquired already"},
    {211, "hipErrorNotMapped", "the resource is not mapped"},
    {212, "hipErrorNotMappedAsArray", "the resource is not mapped as an array"},
    {213, "hipErrorNotMappedAsPointer", "the resource is not mapped as a pointer"},
    {214, "hipErrorECCNotCorrectable", "the memory has an error that ECC can't correct"},
    {215, "hipErrorUnsupportedLimit", "the device does not have that limit"},
    {216, "hipErrorContextAlreadyInUse", "the context is bound to another thread"},
    {217, "hipErrorPeerAccessUnsupported", "the devices can't reach each other"},
    {218, "hipErrorInvalidKernelFile", "the code of a kernel is not valid"},
    {219, "hipErrorInvalidGraphicsContext", "the graphics context is not valid"},
    {300, "hipErrorInvalidSource", "the source of a kernel is not valid"},
    {301, "hipErrorFileNotFound", "no such file"},
    {302, "hipErrorSharedObjectSymbolNotFound", "a shared object lacks a symbol"},
    {303, "hipErrorSharedObjectInitFailed", "a shared object can't be initialized"},
    {304, "hipErrorOperatingSystem", "a call of the operating system failed"},
    {400, "hipErrorInvalidHandle", "a handle is not valid"},
    {401, "hipErrorIllegalState", "a resource is not in the state that the call needs"},
    {500, "hipErrorNotFound", "no such symbol"},
    {600, "hipErrorNotReady", "not done yet"},
    {700, "hipErrorIllegalAddress", "a kernel used an address that is not its to use"},
    {701, "hipErrorLaunchOutOfResources", "the launch needs more resources than there are"},
    {702, "hipErrorLaunchTimeOut", "a kernel took too long and was ended"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access is enabled already"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access is not enabled"},
    {708, "hipErrorSetOnActiveProcess", "the primary context is in use"},
    {709, "hipErrorContextIsDestroyed", "the current context has been destroyed"},
    {710, "hipErrorAssert", "an assertion in a kernel failed"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "the host memory is registered already"},
    {713, "hipErrorHostMemoryNotRegistered", "the host memory is not registered"},
    {719, "hipErrorLaunchFailure", "a kernel failed"},
    {720, "hipErrorCooperativeLaunchTooLarge",
     "the blocks of a cooperative launch don't fit on the device at once"},
    {801, "hipErrorNotSupported", "not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "not permitted while a stream captures"},
    {901, "hipErrorStreamCaptureInvalidated", "the capture is invalid since an earlier error"},
    {902, "hipErrorStreamCaptureMerge", "two captures would become one"},
    {903, "hipErrorStreamCaptureUnmatched", "the capture did not begin in this stream"},
    {904, "hipErrorStreamCaptureUnjoined", "a stream of the capture was not joined"},
    {905, "hipErrorStreamCaptureIsolation", "work of a capture would depend on work outside"},
    {906, "hipErrorStreamCaptureImplicit", "the legacy stream would depend on a capture"},
    {907, "hipErrorCapturedEvent", "the event was recorded in a capture"},
    {908, "hipErrorStreamCaptureWrongThread", "the capture began in another thread"},
    {910, "hipErrorGraphExecUpdateFailure",
     "the graph differs too much from what was instantiated"},
    {911, "hipErrorInvalidChannelDescriptor", "a device of another kind failed"},
    {912, "hipErrorInvalidTexture", "the size of a cluster is not valid"},
    {999, "hipErrorUnknown", "unknown error: the device is lost"},
    {1052, "hipErrorRuntimeMemory", "a call for memory failed"},
    {1053, "hipErrorRuntimeOther", "a call of the runtime below failed"},
    {1054, "hipErrorTbd", "not known yet"},
};

enum { KNOWN = sizeof known / sizeof *known };

static const struct known *find(hipError_t code) {
    for (int i = 0; i < KNOWN; i++)
        if (known[i].code == code)
            return &known[i];
    return NULL;
}

const char *hipGetErrorName(hipError_t code) {
    const struct known *k = find(code);
    return k ? k->name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t code) {
    const struct known *k = find(code);
    return k ? k->text : "unknown error";
}

hipError_t hipDrvGetErrorName(hipError_t code, const char **errorString) {
    const struct known *k = find(code);
    if (!errorString || !k)
        return hip_error(HIP_INVALID_VALUE);
    *errorString = k->name;
    return hipSuccess;
}

hipError_t hipDrvGetErrorString(hipError_t code, const char **errorString) {
    const struct known *k = find(code);
    if (!errorString || !k)
        return hip_error(HIP_INVALID_VALUE);
    *errorString = k->text;
    return hipSuccess;
}
