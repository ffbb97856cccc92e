/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks of a kernel a multiprocessor holds.
 */
#include "face.h"

enum { CLUSTER = 8 };

static CUresult find(CUfunction handle, const struct drv_function **function) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    return r ? r : cu_result(drv_function_of(context, handle, function));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !numBlocks || blockSize <= 0 || flags > 1)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_block block = {f, (uint64_t)blockSize, dynamicSMemSize};
    *numBlocks = (int)drv_blocks_held(&block);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !minGridSize || !blockSize || flags > 1)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    uint64_t blocks =
        drv_best_block(f, blockSizeLimit, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSize);
    *minGridSize = (int)(blocks * drv_current()->device->is->multiprocessors);
    return blocks ? CUDA_SUCCESS : cu_result(DRV_LAUNCH_RESOURCES);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                     blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                     blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int blockSize) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    uint64_t each = drv_vendor.multiprocessor.shared / (uint64_t)numBlocks;
    uint64_t fixed = drv_vendor.multiprocessor.reserved + f->shared_bytes;
    *dynamicSmemSize = each > fixed ? each - fixed : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                      const CUlaunchConfig *config) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !numClusters || !config)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    struct drv_block block = {f, threads, config->sharedMemBytes};
    *numClusters =
        (int)(drv_blocks_held(&block) * drv_current()->device->is->multiprocessors / CLUSTER);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                            const CUlaunchConfig *config) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !clusterSize || !config)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *clusterSize = CLUSTER;
    return CUDA_SUCCESS;
}
