/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"
#include "structs.h"

static CUresult launch(CUfunction f, const struct drv_shape *shape, CUstream handle,
                       void **parameters, void **extra) {
    struct drv_stream *stream;
    struct drv_packed packed;
    struct drv_work work;
    const struct drv_function *function;
    CUresult r = cu_stream(handle, &stream);
    if (!r)
        r = cu_result(drv_function_of(stream->context, f, &function));
    if (r || !drv_read_extra(extra, &packed) || (parameters && packed.bytes))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_launch_work(stream->context->device, function, shape, parameters,
                                  packed.bytes, packed.size, &work));
    return r ? r : cu_result(drv_submit(stream, &work, NULL, 0, NULL));
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void **kernelParams, void **extra) {
    struct drv_shape shape = {
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, false};
    return launch(f, &shape, hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams) {
    struct drv_shape shape = {
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, true};
    return launch(f, &shape, hStream, kernelParams, NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                          void **extra) {
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                              {config->blockDimX, config->blockDimY, config->blockDimZ},
                              config->sharedMemBytes,
                              false};
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_SIM_ATTRIBUTE_COOPERATIVE)
            shape.cooperative = config->attrs[i].value.cooperative;
    return launch(f, &shape, config->hStream, kernelParams, extra);
}
