/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that does nothing, so that what a hook costs can be told from what a driver does: the
 * program's usual launch through the whole of its hook, against the same call without. In a process
 * that does nothing else meanwhile.
 */
#include "api.h"

static cl_int nothing(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                      const size_t *offset, const size_t *global, const size_t *local,
                      cl_uint num_events, const cl_event *wait_list, cl_event *event) {
    (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local;
    (void)num_events, (void)wait_list, (void)event;
    krex_compiler_fence(); /* a call with an effect can't be left out */
    return CL_SUCCESS;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint num_events, const cl_event *wait_list, cl_event *event);

/* One loop for both: only the function that it calls differs. */
__attribute__((noinline)) static void call(krex_fn_clEnqueueNDRangeKernel launch,
                                           cl_command_queue queue, uint64_t times) {
    size_t global = 1;
    for (uint64_t i = 0; i < times; i++)
        launch(queue, NULL, 1, NULL, &global, NULL, 0, NULL, NULL);
}

void krex_cl_stand_in(bool hooked, uint64_t times) {
    void **route = &krex_cl_route[KREX_INDEX_clEnqueueNDRangeKernel], *before = *route;
    *route = (void *)nothing;
    call(hooked ? clEnqueueNDRangeKernel : nothing, NULL, times);
    *route = before;
}
