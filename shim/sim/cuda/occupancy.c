/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks of a kernel a multiprocessor holds, by threads, registers and shared memory.
 */
#include "face.h"

enum {
    THREADS = 2048,
    BLOCKS = 32,
    REGISTERS = 65536,
    SHARED = 233472,
    RESERVED = 1024, /* of shared memory, for each block */
    WARP = 32,
    LARGEST = 1024,
    CLUSTER = 8,
};

static CUresult find(CUfunction handle, const struct drv_function **function) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    return r ? r : cu_result(drv_function_of(context, handle, function));
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t blocks_of(const struct drv_function *f, uint64_t threads, uint64_t dynamic) {
    threads = (threads + WARP - 1) / WARP * WARP;
    if (!threads || threads > f->max_threads)
        return 0;
    uint64_t registers = f->registers ? f->registers : 1;
    uint64_t blocks = least(BLOCKS, THREADS / threads);
    blocks = least(blocks, REGISTERS / (registers * threads));
    return least(blocks, SHARED / (RESERVED + f->shared_bytes + dynamic));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
    const struct drv_function *f;
    CUresult r = find(func, &f);
    if (r || !numBlocks || blockSize <= 0 || flags > 1)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *numBlocks = (int)blocks_of(f, (uint64_t)blockSize, dynamicSMemSize);
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
    int limit = blockSizeLimit > 0 && blockSizeLimit < LARGEST ? blockSizeLimit : LARGEST;
    uint64_t best = 0, blocks = 0;
    for (int threads = limit; threads > 0; threads -= WARP) {
        size_t dynamic =
            blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(threads) : dynamicSMemSize;
        uint64_t held = blocks_of(f, (uint64_t)threads, dynamic);
        if (held * (uint64_t)threads > best) {
            best = held * (uint64_t)threads;
            blocks = held;
            *blockSize = threads;
        }
    }
    *minGridSize = (int)(blocks * drv_current()->device->is->multiprocessors);
    return best ? CUDA_SUCCESS : cu_result(DRV_LAUNCH_RESOURCES);
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
    uint64_t each = SHARED / (uint64_t)numBlocks, fixed = RESERVED + f->shared_bytes;
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
    uint64_t blocks = blocks_of(f, threads, config->sharedMemBytes);
    *numClusters = (int)(blocks * drv_current()->device->is->multiprocessors / CLUSTER);
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
