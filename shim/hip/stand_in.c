/* SPDX-License-Identifier: Apache-2.0
 *
 * A runtime that does nothing, as in ../opencl/stand_in.c: for what the hook of a launch costs.
 */
#include "api.h"

static hipError_t nothing(hipFunction_t f, unsigned int grid_x, unsigned int grid_y,
                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                          unsigned int block_z, unsigned int shared_bytes, hipStream_t stream,
                          void **params, void **extra) {
    (void)f, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)stream, (void)params, (void)extra;
    krex_compiler_fence(); /* a call with an effect can't be left out */
    return hipSuccess;
}

/* One loop for both: only the function that it calls differs. */
__attribute__((noinline)) static void call(krex_fn_hipModuleLaunchKernel launch, uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

void krex_hip_stand_in(bool hooked, uint64_t times) {
    void **route = &krex_hip_route[KREX_LINE_hipModuleLaunchKernel], *before = *route;
    void *hook = krex_hip_hooks[KREX_LINE_hipModuleLaunchKernel];
    *route = (void *)nothing;
    call(hooked ? (krex_fn_hipModuleLaunchKernel)hook : nothing, times);
    *route = before;
}
