/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that does nothing, as in ../opencl/stand_in.c: for what the hook of a launch costs.
 */
#include "api.h"

static CUresult nothing(CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void **params, void **extra) {
    (void)f, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)stream, (void)params, (void)extra;
    krex_compiler_fence(); /* a call with an effect can't be left out */
    return CUDA_SUCCESS;
}

/* One loop for both: only the function that it calls differs. */
__attribute__((noinline)) static void call(krex_fn_cuLaunchKernel launch, uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

void krex_cu_stand_in(bool hooked, uint64_t times) {
    void **route = &krex_cu_route[KREX_LINE_cuLaunchKernel], *before = *route;
    *route = (void *)nothing;
    call(hooked ? (krex_fn_cuLaunchKernel)krex_cu_hooks[KREX_LINE_cuLaunchKernel] : nothing, times);
    *route = before;
}
