/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include "../region.h"

#define HOOK __attribute__((visibility("default")))

uint32_t krex_cl_profiles;

bool krex_cl_is_timed(cl_command_queue queue) {
    cl_command_queue_properties properties = 0;
    KREX_REAL(queue, clGetCommandQueueInfo)
    (queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    return properties & CL_QUEUE_PROFILING_ENABLE;
}

void krex_cl_queue_times(cl_command_queue queue) {
    if (krex_cl_is_timed(queue)) {
        if (krex_region_has("events"))
            krex_arm_events();
        krex_store_relaxed(&krex_cl_profiles, 1);
    }
}

static cl_ulong when(cl_event event, cl_profiling_info what) {
    cl_ulong ns = 0;
    KREX_REAL(event, clGetEventProfilingInfo)(event, what, sizeof ns, &ns, NULL);
    return ns;
}

HOOK cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info param_name,
                                    size_t param_value_size, void *param_value,
                                    size_t *param_value_size_ret) {
    cl_int result = KREX_REAL(event, clGetEventProfilingInfo)(event, param_name, param_value_size,
                                                              param_value, param_value_size_ret);
    if (result == CL_SUCCESS && param_name == CL_PROFILING_COMMAND_END && param_value) {
        krex_arm_events();
        krex_audit_read(event, event,
                        when(event, CL_PROFILING_COMMAND_END) -
                            when(event, CL_PROFILING_COMMAND_START));
    }
    return result;
}

HOOK cl_int clFinish(cl_command_queue queue) {
    cl_int result = KREX_REAL(queue, clFinish)(queue);
    krex_audit_synchronised(queue, NULL);
    return result;
}

HOOK cl_int clWaitForEvents(cl_uint num_events, const cl_event *event_list) {
    cl_event first = num_events && event_list ? event_list[0] : NULL;
    cl_int result = KREX_REAL(first, clWaitForEvents)(num_events, event_list);
    for (cl_uint i = 0; first && i < num_events; i++)
        krex_audit_synchronised(NULL, event_list[i]);
    return result;
}
