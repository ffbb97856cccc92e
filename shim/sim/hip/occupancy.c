/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks of a kernel a compute unit holds.
 */
#include "load.h"

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *f,
                                                                 int blockSize,
                                                                 size_t dynSharedMemPerBlk,
                                                                 unsigned int flags) {
    struct drv_function *function;
    hipError_t r = hip_kernel(f, &function);
    if (r || !numBlocks || blockSize <= 0 || flags > 1)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    struct drv_block block = {function, (uint64_t)blockSize, dynSharedMemPerBlk};
    *numBlocks = (int)drv_blocks_held(&block);
    return r;
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *f,
                                                        int blockSize, size_t dynSharedMemPerBlk) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                 dynSharedMemPerBlk, 0);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, hipFunction_t f, int blockSize, size_t dynSharedMemPerBlk, unsigned int flags) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                 dynSharedMemPerBlk, flags);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, hipFunction_t f,
                                                              int blockSize,
                                                              size_t dynSharedMemPerBlk) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                 dynSharedMemPerBlk, 0);
}

hipError_t hipOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, const void *f,
                                             size_t dynSharedMemPerBlk, int blockSizeLimit) {
    struct drv_device *device;
    struct drv_function *function;
    hipError_t r = hip_device(hip_current_ordinal(), &device);
    if (!r)
        r = hip_kernel(f, &function);
    if (r || !gridSize || !blockSize)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    uint64_t blocks = drv_best_block(function, blockSizeLimit, NULL, dynSharedMemPerBlk, blockSize);
    *gridSize = (int)(blocks * device->is->multiprocessors);
    return blocks ? r : hip_result(DRV_LAUNCH_RESOURCES);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *gridSize, int *blockSize,
                                                            hipFunction_t f,
                                                            size_t dynSharedMemPerBlk,
                                                            int blockSizeLimit,
                                                            unsigned int flags) {
    return flags > 1 ? hip_error(HIP_INVALID_VALUE)
                     : hipOccupancyMaxPotentialBlockSize(gridSize, blockSize, f, dynSharedMemPerBlk,
                                                         blockSizeLimit);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, hipFunction_t f,
                                                   size_t dynSharedMemPerBlk, int blockSizeLimit) {
    return hipOccupancyMaxPotentialBlockSize(gridSize, blockSize, f, dynSharedMemPerBlk,
                                             blockSizeLimit);
}
