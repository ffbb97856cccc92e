/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks: one body a kind (api.def), and the few written by hand. Nothing here is logic.
 */
#include <string.h>

#include "../client.h"
#include "../gate.h"
#include "api.h"
#include "command.h"
#include "timing.h"

#define HOOK __attribute__((visibility("default")))

/* A blocking call announces only its submission, not its wait: a region must not stand and wait for
 * a transfer that stands behind something else. */
static cl_int wait_for(cl_event event, cl_event own) {
    cl_int status = KREX_REAL(event, clWaitForEvents)(1, &event);
    if (own)
        KREX_REAL(own, clReleaseEvent)(own);
    return status;
}

/* Declares what the drain knows of a command, and gives the command an event if the drain needs one. */
#define KREX_CL_BEGIN(order, num_events, wait_list, event)                                         \
    struct krex_cl_command command;                                                                \
    (event) = krex_cl_command_begin(&command, order, queue, num_events, wait_list, event)

#define KREX_CL_ENQUEUE(ret, name, object, params, args)                                           \
    HOOK ret name params;                                                                          \
    ret name params {                                                                              \
        cl_event *asked = event;                                                                   \
        bool timed = krex_cl_timed_begin(queue, asked);                                            \
        bool mine = krex_gate_enter();                                                             \
        KREX_CL_BEGIN(KREX_CL_LISTED, num_events, wait_list, event);                               \
        ret result = KREX_REAL(object, name) args;                                                 \
        krex_cl_command_end(&command, queue, event, result == CL_SUCCESS);                         \
        krex_gate_leave(mine);                                                                     \
        krex_cl_timed_end(timed, queue, asked, result == CL_SUCCESS);                              \
        return result;                                                                             \
    }

#define KREX_CL_ENQUEUE_BLOCKING(ret, name, object, params, args)                                  \
    HOOK ret name params;                                                                          \
    ret name params {                                                                              \
        bool timed = krex_cl_timed_begin(queue, event);                                            \
        cl_event *asked = event;                                                                   \
        cl_bool wait = blocking;                                                                   \
        cl_event own = NULL;                                                                       \
        if (wait && !event)                                                                        \
            event = &own;                                                                          \
        blocking = CL_FALSE;                                                                       \
        bool mine = krex_gate_enter();                                                             \
        KREX_CL_BEGIN(KREX_CL_LISTED, num_events, wait_list, event);                               \
        ret result = KREX_REAL(object, name) args;                                                 \
        krex_cl_command_end(&command, queue, event, result == CL_SUCCESS);                         \
        krex_gate_leave(mine);                                                                     \
        krex_cl_timed_end(timed, queue, asked, result == CL_SUCCESS);                              \
        return wait && result == CL_SUCCESS ? wait_for(*event, own) : result;                      \
    }

#define KREX_CL_MAP_BLOCKING(ret, name, object, params, args)                                      \
    HOOK ret name params;                                                                          \
    ret name params {                                                                              \
        bool timed = krex_cl_timed_begin(queue, event);                                            \
        cl_event *asked = event;                                                                   \
        cl_bool wait = blocking;                                                                   \
        cl_event own = NULL;                                                                       \
        if (wait && !event)                                                                        \
            event = &own;                                                                          \
        blocking = CL_FALSE;                                                                       \
        bool mine = krex_gate_enter();                                                             \
        KREX_CL_BEGIN(KREX_CL_LISTED, num_events, wait_list, event);                               \
        ret result = KREX_REAL(object, name) args;                                                 \
        krex_cl_command_end(&command, queue, event, result != NULL);                               \
        krex_gate_leave(mine);                                                                     \
        krex_cl_timed_end(timed, queue, asked, result != NULL);                                    \
        cl_int status = wait && result ? wait_for(*event, own) : CL_SUCCESS;                       \
        if (status != CL_SUCCESS && errcode_ret)                                                   \
            *errcode_ret = status;                                                                 \
        return status == CL_SUCCESS ? result : NULL;                                               \
    }

#define KREX_CL_SUBMIT_HAND(ret, name, object, params, args) HOOK ret name params;
#define KREX_CL_HEAVY_HAND KREX_CL_SUBMIT_HAND
#define KREX_CL_TRACK_HAND KREX_CL_SUBMIT_HAND
#define KREX_CL_RESOLVE_HAND KREX_CL_SUBMIT_HAND
#define KREX_CL_NEVER(...)
#define KREX_CL_PASS(...)
#define KREX_CL_EXT_SUBMIT(...)
#define KREX_CL_EXT_HAND(...)

/* clSVMFree returns nothing. */
#define KREX_CL_HEAVY(ret, name, object, params, args)                                             \
    HOOK ret name params;                                                                          \
    ret name params {                                                                              \
        bool mine __attribute__((cleanup(leave_heavy))) = krex_heavy_enter();                      \
        return KREX_REAL(object, name) args;                                                       \
    }

static void leave_heavy(bool *mine) { krex_heavy_leave(*mine); }

#define KREX_CL_API(kind, ret, name, index, object, params, args)                                  \
    KREX_CL_##kind(ret, name, object, params, args)
#include "api.def"
#undef KREX_CL_API

/* The commands that order others. The older three say it without a list, or without an event. */
#define KREX_CL_ORDERS(name, order, num_events, wait_list, event, args)                            \
    bool mine = krex_gate_enter();                                                                 \
    KREX_CL_BEGIN(order, num_events, wait_list, event);                                            \
    cl_int result = KREX_REAL(queue, name) args;                                                   \
    krex_cl_command_end(&command, queue, event, result == CL_SUCCESS);                             \
    krex_gate_leave(mine);                                                                         \
    return result

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint num_events,
                                   const cl_event *wait_list, cl_event *event) {
    KREX_CL_ORDERS(clEnqueueMarkerWithWaitList, KREX_CL_ALL, num_events, wait_list, event,
                   (queue, num_events, wait_list, event));
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint num_events,
                                    const cl_event *wait_list, cl_event *event) {
    KREX_CL_ORDERS(clEnqueueBarrierWithWaitList, KREX_CL_ALL_BARRIER, num_events, wait_list, event,
                   (queue, num_events, wait_list, event));
}

cl_int clEnqueueMarker(cl_command_queue queue, cl_event *event) {
    KREX_CL_ORDERS(clEnqueueMarker, KREX_CL_ALL, 0, NULL, event, (queue, event));
}

cl_int clEnqueueBarrier(cl_command_queue queue) {
    cl_event *none = NULL;
    KREX_CL_ORDERS(clEnqueueBarrier, KREX_CL_ALL_BARRIER, 0, NULL, none, (queue));
}

cl_int clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_events,
                              const cl_event *event_list) {
    cl_event *none = NULL;
    KREX_CL_ORDERS(clEnqueueWaitForEvents, KREX_CL_BARRIER, num_events, event_list, none,
                   (queue, num_events, event_list));
}

cl_event clCreateUserEvent(cl_context context, cl_int *errcode_ret) {
    cl_event event = KREX_REAL(context, clCreateUserEvent)(context, errcode_ret);
    if (event)
        krex_cl_user_event_made(event);
    return event;
}

/* Setting a user event lets waiting work start: a submission. */
cl_int clSetUserEventStatus(cl_event event, cl_int execution_status) {
    bool mine = krex_gate_enter();
    if (execution_status <= CL_COMPLETE)
        krex_cl_user_event_setting(event);
    cl_int result = KREX_REAL(event, clSetUserEventStatus)(event, execution_status);
    krex_gate_leave(mine);
    return result;
}

cl_context clCreateContext(const cl_context_properties *properties, cl_uint num_devices,
                           const cl_device_id *devices, krex_cl_context_notify pfn_notify,
                           void *user_data, cl_int *errcode_ret) {
    cl_device_id first = num_devices && devices ? devices[0] : NULL;
    krex_cl_choose_route();
    for (cl_uint i = 0; first && i < num_devices; i++)
        krex_cl_context_on(devices[i]);
    bool mine = krex_heavy_enter();
    cl_context result = KREX_REAL(first, clCreateContext)(properties, num_devices, devices,
                                                          pfn_notify, user_data, errcode_ret);
    krex_heavy_leave(mine);
    return result;
}

static cl_platform_id platform_of(const cl_context_properties *properties) {
    cl_platform_id first = NULL;
    for (const cl_context_properties *p = properties; p && *p; p += 2)
        if (p[0] == CL_CONTEXT_PLATFORM)
            return (cl_platform_id)p[1];
    KREX_REAL(NULL, clGetPlatformIDs)(1, &first, NULL);
    return first;
}

/* Registers for the devices that the context will be on, so that its making is a heavy call there. */
static void context_by_type(const cl_context_properties *properties, cl_device_type type) {
    cl_device_id devices[16];
    cl_uint count = 0;
    cl_platform_id platform = platform_of(properties);
    if (platform)
        KREX_REAL(platform, clGetDeviceIDs)(platform, type, 16, devices, &count);
    for (cl_uint i = 0; i < count && i < 16; i++)
        krex_cl_context_on(devices[i]);
}

cl_context clCreateContextFromType(const cl_context_properties *properties,
                                   cl_device_type device_type, krex_cl_context_notify pfn_notify,
                                   void *user_data, cl_int *errcode_ret) {
    krex_cl_choose_route();
    context_by_type(properties, device_type);
    bool mine = krex_heavy_enter();
    cl_context result = KREX_REAL(NULL, clCreateContextFromType)(
        properties, device_type, pfn_notify, user_data, errcode_ret);
    krex_heavy_leave(mine);
    return result;
}

cl_int clReleaseContext(cl_context context) {
    bool mine = krex_heavy_enter();
    cl_int result = KREX_REAL(context, clReleaseContext)(context);
    krex_heavy_leave(mine);
    return result;
}

static void queue_made(cl_command_queue queue) {
    krex_cl_queue_made(queue);
    krex_cl_queue_times(queue);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *errcode_ret) {
    bool mine = krex_heavy_enter();
    cl_command_queue queue =
        KREX_REAL(context, clCreateCommandQueue)(context, device, properties, errcode_ret);
    if (queue)
        queue_made(queue);
    krex_heavy_leave(mine);
    return queue;
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties *properties,
                                                    cl_int *errcode_ret) {
    bool mine = krex_heavy_enter();
    cl_command_queue queue = KREX_REAL(context, clCreateCommandQueueWithProperties)(
        context, device, properties, errcode_ret);
    if (queue)
        queue_made(queue);
    krex_heavy_leave(mine);
    return queue;
}

/* The same before it was in the standard: each driver has its own, and nobody exports it. */
static cl_command_queue
krex_clCreateCommandQueueWithPropertiesKHR(cl_context context, cl_device_id device,
                                           const cl_queue_properties *properties,
                                           cl_int *errcode_ret) {
    static const char name[] = "clCreateCommandQueueWithPropertiesKHR";
    krex_fn_clCreateCommandQueueWithProperties create = NULL;
    cl_platform_id platform = NULL;
    if (device)
        KREX_REAL(device, clGetDeviceInfo)
    (device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
    if (platform)
        create = KREX_REAL(platform, clGetExtensionFunctionAddressForPlatform)(platform, name);
    if (!create && errcode_ret)
        *errcode_ret = CL_INVALID_DEVICE;
    if (!create)
        return NULL;
    bool mine = krex_heavy_enter();
    cl_command_queue queue = create(context, device, properties, errcode_ret);
    if (queue)
        queue_made(queue);
    krex_heavy_leave(mine);
    return queue;
}

cl_int clRetainCommandQueue(cl_command_queue queue) {
    cl_int result = KREX_REAL(queue, clRetainCommandQueue)(queue);
    if (result == CL_SUCCESS)
        krex_cl_queue_retained(queue);
    return result;
}

cl_int clReleaseCommandQueue(cl_command_queue queue) {
    bool mine = krex_heavy_enter();
    if (queue)
        krex_cl_queue_releasing(queue);
    cl_int result = KREX_REAL(queue, clReleaseCommandQueue)(queue);
    krex_heavy_leave(mine);
    return result;
}

struct hook {
    const char *name;
    void *function; /* NULL: leaves work on the device, and is not hooked */
};

#define KREX_HOOKED(name) {#name, (void *)name},
static const struct hook hooks[] = {
#define KREX_LIST_ENQUEUE KREX_HOOKED
#define KREX_LIST_ENQUEUE_BLOCKING KREX_HOOKED
#define KREX_LIST_MAP_BLOCKING KREX_HOOKED
#define KREX_LIST_SUBMIT_HAND KREX_HOOKED
#define KREX_LIST_HEAVY KREX_HOOKED
#define KREX_LIST_HEAVY_HAND KREX_HOOKED
#define KREX_LIST_TRACK_HAND KREX_HOOKED
#define KREX_LIST_RESOLVE_HAND KREX_HOOKED
#define KREX_LIST_NEVER(name)
#define KREX_LIST_PASS(name)
#define KREX_LIST_EXT_SUBMIT(name) {#name, NULL},
#define KREX_LIST_EXT_HAND(name) {#name, (void *)krex_##name},
#define KREX_CL_API(kind, ret, name, index, object, params, args) KREX_LIST_##kind(name)
#include "api.def"
#undef KREX_CL_API
};

static const struct hook *find_hook(const char *name) {
    const struct hook *end = hooks + sizeof hooks / sizeof hooks[0], *h = hooks;
    while (h < end && strcmp(h->name, name) != 0)
        h++;
    return h < end ? h : NULL;
}

static bool is_enqueue(const char *name) { return !strncmp(name, "clEnqueue", 9); }

bool krex_cl_cares(const char *name) {
    return name[0] == 'c' && name[1] == 'l' && (is_enqueue(name) || find_hook(name));
}

/* A submission that we have no hook for is handed out as it is, and the process's regions are no
 * longer certain. */
void *krex_cl_hand_out(const char *name, void *real) {
    const struct hook *h = real ? find_hook(name) : NULL;
    if (h && h->function)
        return h->function;
    if (!real || (!h && !is_enqueue(name)))
        return real;
    krex_client_ready("");
    if (krex_client_flag(KREX_FLAG_UNLISTED))
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "unlisted_submission", name);
    return real;
}

void *clGetExtensionFunctionAddress(const char *func_name) {
    void *real = KREX_REAL(NULL, clGetExtensionFunctionAddress)(func_name);
    return func_name ? krex_cl_hand_out(func_name, real) : real;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *func_name) {
    void *real = KREX_REAL(platform, clGetExtensionFunctionAddressForPlatform)(platform, func_name);
    return func_name ? krex_cl_hand_out(func_name, real) : real;
}
