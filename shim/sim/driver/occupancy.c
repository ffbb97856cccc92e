/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

enum { LARGEST = 1024 };

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t drv_blocks_held(const struct drv_block *block) {
    const struct drv_function *f = block->function;
    uint64_t warp = drv_vendor.multiprocessor.warp;
    uint64_t threads = (block->threads + warp - 1) / warp * warp;
    if (!threads || block->threads > f->max_threads)
        return 0;
    uint64_t registers = f->registers ? f->registers : 1;
    uint64_t blocks =
        least(drv_vendor.multiprocessor.blocks, drv_vendor.multiprocessor.threads / threads);
    blocks = least(blocks, drv_vendor.multiprocessor.registers / (registers * threads));
    uint64_t shared = drv_vendor.multiprocessor.reserved + f->shared_bytes + block->dynamic;
    return shared ? least(blocks, drv_vendor.multiprocessor.shared / shared) : blocks;
}

uint64_t drv_best_block(const struct drv_function *function, int limit,
                        size_t (*dynamic_of)(int threads), size_t dynamic, int *threads) {
    uint64_t best = 0, blocks = 0;
    int first = limit > 0 && limit < LARGEST ? limit : LARGEST;
    for (int n = first; n > 0; n -= (int)drv_vendor.multiprocessor.warp) {
        struct drv_block block = {function, (uint64_t)n, dynamic_of ? dynamic_of(n) : dynamic};
        uint64_t held = drv_blocks_held(&block);
        if (held * (uint64_t)n <= best)
            continue;
        best = held * (uint64_t)n;
        blocks = held;
        *threads = n;
    }
    return blocks;
}
