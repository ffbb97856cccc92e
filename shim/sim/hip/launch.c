/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "load.h"

enum { THREADS = 1024, DEPTH = 16, ATTRIBUTE_COOPERATIVE = 2 };

struct attribute {
    unsigned int id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
    } value;
};

static struct drv_shape shape_of(dim3 grid, dim3 block, size_t shared, bool cooperative) {
    return (struct drv_shape){{grid.x, grid.y, grid.z},
                              {block.x, block.y, block.z},
                              shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared,
                              cooperative};
}

/* HIP has errors of its own for blocks that don't fit. */
static hipError_t check(const struct drv_shape *shape) {
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    return threads && threads <= THREADS ? hipSuccess : hip_error(HIP_INVALID_CONFIGURATION);
}

hipError_t hip_launch_work(struct drv_context *context, const void *symbol,
                           const struct drv_shape *shape, void **parameters, void **extra,
                           struct drv_work *work) {
    struct drv_packed packed;
    const struct drv_function *function;
    hipError_t r = hip_function(symbol, context, &function);
    if (!r)
        r = check(shape);
    if (r || !drv_read_extra(extra, &packed) || (parameters && packed.bytes))
        return r ? r : hip_error(HIP_INVALID_VALUE);
    enum drv_result made = drv_launch_work(context->device, function, shape, parameters,
                                           packed.bytes, packed.size, work);
    return made == DRV_LAUNCH_RESOURCES ? hip_error(HIP_LAUNCH_FAILURE) : hip_result(made);
}

static hipError_t launch(const void *symbol, const struct drv_shape *shape, hipStream_t handle,
                         void **parameters, void **extra) {
    struct drv_stream *stream;
    struct drv_work work;
    hipError_t r = hip_stream(handle, &stream);
    if (!r)
        r = hip_launch_work(stream->context, symbol, shape, parameters, extra, &work);
    return r ? r : hip_result(drv_submit(stream, &work, NULL, 0, NULL));
}

hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY,
                                 unsigned int gridDimZ, unsigned int blockDimX,
                                 unsigned int blockDimY, unsigned int blockDimZ,
                                 unsigned int sharedMemBytes, hipStream_t stream,
                                 void **kernelParams, void **extra) {
    struct drv_shape shape = {
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, false};
    return launch(f, &shape, stream, kernelParams, extra);
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned int gridDimX,
                                            unsigned int gridDimY, unsigned int gridDimZ,
                                            unsigned int blockDimX, unsigned int blockDimY,
                                            unsigned int blockDimZ, unsigned int sharedMemBytes,
                                            hipStream_t stream, void **kernelParams) {
    struct drv_shape shape = {
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, true};
    return launch(f, &shape, stream, kernelParams, NULL);
}

/* Its first sizes are threads, not blocks; the last block of a row may be one that is not full. */
hipError_t hipExtModuleLaunchKernel(hipFunction_t f, uint32_t globalWorkSizeX,
                                    uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ,
                                    uint32_t localWorkSizeX, uint32_t localWorkSizeY,
                                    uint32_t localWorkSizeZ, size_t sharedMemBytes,
                                    hipStream_t hStream, void **kernelParams, void **extra,
                                    hipEvent_t startEvent, hipEvent_t stopEvent, uint32_t flags) {
    const uint32_t all[3] = {globalWorkSizeX, globalWorkSizeY, globalWorkSizeZ};
    dim3 grid, block = {localWorkSizeX, localWorkSizeY, localWorkSizeZ};
    (void)flags;
    if (!block.x || !block.y || !block.z)
        return hip_error(HIP_INVALID_CONFIGURATION);
    grid.x = all[0] / block.x + (all[0] % block.x != 0);
    grid.y = all[1] / block.y + (all[1] % block.y != 0);
    grid.z = all[2] / block.z + (all[2] % block.z != 0);
    struct drv_shape shape = shape_of(grid, block, sharedMemBytes, false);
    hipError_t r = startEvent ? hipEventRecord(startEvent, hStream) : hipSuccess;
    if (!r)
        r = launch(f, &shape, hStream, kernelParams, extra);
    return r || !stopEvent ? r : hipEventRecord(stopEvent, hStream);
}

hipError_t hipHccModuleLaunchKernel(hipFunction_t f, uint32_t globalWorkSizeX,
                                    uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ,
                                    uint32_t localWorkSizeX, uint32_t localWorkSizeY,
                                    uint32_t localWorkSizeZ, size_t sharedMemBytes,
                                    hipStream_t hStream, void **kernelParams, void **extra,
                                    hipEvent_t startEvent, hipEvent_t stopEvent) {
    return hipExtModuleLaunchKernel(f, globalWorkSizeX, globalWorkSizeY, globalWorkSizeZ,
                                    localWorkSizeX, localWorkSizeY, localWorkSizeZ, sharedMemBytes,
                                    hStream, kernelParams, extra, startEvent, stopEvent, 0);
}

/* The same two, as C++ names them. */
hipError_t
_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t, hipStream_t,
    void **, void **, hipEvent_t, hipEvent_t, uint32_t)
    __attribute__((alias("hipExtModuleLaunchKernel")));
hipError_t
_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(
    hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t, hipStream_t,
    void **, void **, hipEvent_t, hipEvent_t) __attribute__((alias("hipHccModuleLaunchKernel")));

hipError_t hipLaunchKernel(const void *function_address, dim3 numBlocks, dim3 dimBlocks,
                           void **args, size_t sharedMemBytes, hipStream_t stream) {
    struct drv_shape shape = shape_of(numBlocks, dimBlocks, sharedMemBytes, false);
    return launch(function_address, &shape, stream, args, NULL);
}

hipError_t hipLaunchCooperativeKernel(const void *f, dim3 gridDim, dim3 blockDimX,
                                      void **kernelParams, unsigned int sharedMemBytes,
                                      hipStream_t stream) {
    struct drv_shape shape = shape_of(gridDim, blockDimX, sharedMemBytes, true);
    return launch(f, &shape, stream, kernelParams, NULL);
}

hipError_t hipExtLaunchKernel(const void *function_address, dim3 numBlocks, dim3 dimBlocks,
                              void **args, size_t sharedMemBytes, hipStream_t stream,
                              hipEvent_t startEvent, hipEvent_t stopEvent, int flags) {
    (void)flags;
    hipError_t r = startEvent ? hipEventRecord(startEvent, stream) : hipSuccess;
    if (!r)
        r = hipLaunchKernel(function_address, numBlocks, dimBlocks, args, sharedMemBytes, stream);
    return r || !stopEvent ? r : hipEventRecord(stopEvent, stream);
}

static bool is_cooperative(const void *attributes, unsigned count) {
    const struct attribute *a = attributes;
    for (unsigned i = 0; a && i < count; i++)
        if (a[i].id == ATTRIBUTE_COOPERATIVE)
            return a[i].value.cooperative;
    return false;
}

hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *config, hipFunction_t f, void **params,
                                void **extra) {
    if (!config)
        return hip_error(HIP_INVALID_VALUE);
    struct drv_shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                              {config->blockDimX, config->blockDimY, config->blockDimZ},
                              config->sharedMemBytes,
                              is_cooperative(config->attrs, config->numAttrs)};
    return launch(f, &shape, config->hStream, params, extra);
}

hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *config, const void *fPtr, void **args) {
    if (!config)
        return hip_error(HIP_INVALID_VALUE);
    struct drv_shape shape = shape_of(config->gridDim, config->blockDim, config->dynamicSmemBytes,
                                      is_cooperative(config->attrs, config->numAttrs));
    return launch(fPtr, &shape, config->stream, args, NULL);
}

static hipError_t launch_all(const hipLaunchParams *list, int count, bool cooperative) {
    hipError_t r = list && count > 0 ? hip_ready() : hip_error(HIP_INVALID_VALUE);
    for (int i = 0; !r && i < count; i++) {
        struct drv_shape shape =
            shape_of(list[i].gridDim, list[i].blockDim, list[i].sharedMem, cooperative);
        r = launch(list[i].func, &shape, list[i].stream, list[i].args, NULL);
    }
    return r;
}

hipError_t hipExtLaunchMultiKernelMultiDevice(hipLaunchParams *launchParamsList, int numDevices,
                                              unsigned int flags) {
    (void)flags;
    return launch_all(launchParamsList, numDevices, false);
}

hipError_t hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *launchParamsList, int numDevices,
                                                 unsigned int flags) {
    (void)flags;
    return launch_all(launchParamsList, numDevices, true);
}

/* What <<<>>> says before the function that launches is called; the older calls give its arguments too. */
struct configuration {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    size_t bytes;
    unsigned char *arguments; /* packed, of DRV_IMAGE_PARAMETER_BYTES; NULL: none yet */
};

static _Thread_local struct configuration configured[DEPTH];
static _Thread_local unsigned depth;

hipError_t __hipPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                      hipStream_t stream) {
    if (depth == DEPTH)
        return hip_result(DRV_OUT_OF_MEMORY);
    configured[depth++] = (struct configuration){gridDim, blockDim, sharedMem, stream, 0, NULL};
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                     hipStream_t *stream) {
    if (!depth)
        return hip_error(HIP_INVALID_CONFIGURATION);
    const struct configuration *c = &configured[--depth];
    *gridDim = c->grid;
    *blockDim = c->block;
    *sharedMem = c->shared;
    *stream = c->stream;
    return hipSuccess;
}

hipError_t hipConfigureCall(dim3 gridDim, dim3 blockDim, size_t sharedMem, hipStream_t stream) {
    return __hipPushCallConfiguration(gridDim, blockDim, sharedMem, stream);
}

hipError_t hipSetupArgument(const void *arg, size_t size, size_t offset) {
    struct configuration *c = depth ? &configured[depth - 1] : NULL;
    if (!c || offset > DRV_IMAGE_PARAMETER_BYTES || size > DRV_IMAGE_PARAMETER_BYTES - offset)
        return hip_error(HIP_INVALID_VALUE);
    if (!c->arguments)
        c->arguments = calloc(1, DRV_IMAGE_PARAMETER_BYTES);
    if (!c->arguments)
        return hip_result(DRV_OUT_OF_MEMORY);
    memcpy(c->arguments + offset, arg, size);
    if (offset + size > c->bytes)
        c->bytes = offset + size;
    return hipSuccess;
}

hipError_t hipLaunchByPtr(const void *func) {
    if (!depth)
        return hip_error(HIP_INVALID_CONFIGURATION);
    struct configuration *c = &configured[--depth];
    struct drv_shape shape = shape_of(c->grid, c->block, c->shared, false);
    void *extra[] = {(void *)1, c->arguments, (void *)2, &c->bytes, drv_vendor.extra_end};
    hipError_t r = launch(func, &shape, c->stream, NULL, c->arguments ? extra : NULL);
    free(c->arguments);
    return r;
}
