/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL driver for tests, that executes nothing by itself: the test says what is complete. For one
 * program, linked with the hooks and the drain alone.
 */
#ifndef OPENCL_DRIVER_H
#define OPENCL_DRIVER_H

#include "check.h"
#include "client.h"
#include "opencl/command.h"
#include "opencl/drain.h"

#define HOOKED(name) extern __typeof__(*(krex_fn_##name)NULL) name
HOOKED(clCreateCommandQueue);
HOOKED(clReleaseCommandQueue);
HOOKED(clCreateUserEvent);
HOOKED(clSetUserEventStatus);
HOOKED(clEnqueueNDRangeKernel);
HOOKED(clEnqueueMarkerWithWaitList);
HOOKED(clEnqueueBarrierWithWaitList);
HOOKED(clEnqueueBarrier);
HOOKED(clEnqueueWaitForEvents);
HOOKED(clGetExtensionFunctionAddressForPlatform);

/* The parts of the shim that this test leaves out. */

void *krex_cl_route[KREX_CL_DISPATCH_SIZE];
uint32_t krex_cl_loaders = 2; /* so that functions are found by the object */
void krex_cl_choose_route(void) {}
void *krex_cl_find_first(int index, const char *name) { return (void)index, (void)name, NULL; }
void krex_cl_context_on(cl_device_id device) { (void)device; }
bool krex_client_ready(const char *device) { return (void)device, false; }
bool krex_client_flag(uint32_t flag) { return (void)flag, false; }
bool krex_client_send(enum krex_wire_type type, uint32_t slot, uint64_t value, const char *text,
                      const char *text2) {
    return (void)type, (void)slot, (void)value, (void)text, (void)text2, false;
}

/* The driver. */

struct object {
    void *const *dispatch;
    int references;
    cl_int status;                          /* of an event */
    cl_command_queue_properties properties; /* of a queue */
    struct object *next;                    /* of a command: the one before it in any queue */
    void *queue;                            /* of a command */
    bool waits_for_all;                     /* a command without a list that orders others */
};

static void *dispatch[KREX_CL_DISPATCH_SIZE];
static struct object context = {.dispatch = dispatch}, device = {.dispatch = dispatch},
                     platform = {.dispatch = dispatch};
static int live;             /* objects */
static struct object *last;  /* the last command; it has one reference for being on this list */
static void (*during)(void); /* what other threads do while the driver takes the next kernel */
static cl_int answer;        /* to the next kernel */
static bool asked_for_event; /* by the last enqueue */

static struct object *make(cl_int status) {
    struct object *o = calloc(1, sizeof *o);
    CHECK(o);
    *o = (struct object){.dispatch = dispatch, .references = 1, .status = status};
    live++;
    return o;
}

static cl_int retain(struct object *o) { return o->references++, CL_SUCCESS; }

static cl_int release(struct object *o) {
    CHECK(o->references > 0);
    if (!--o->references) {
        live--;
        free(o);
    }
    return CL_SUCCESS;
}

static cl_int enqueue(void *in, bool waits_for_all, cl_event *event) {
    struct object *command = make(CL_QUEUED);
    command->queue = in;
    command->waits_for_all = waits_for_all;
    command->next = last;
    last = command;
    asked_for_event = event;
    if (event) {
        retain(command);
        *event = (cl_event)command;
    }
    return CL_SUCCESS;
}

static cl_int launch(cl_command_queue in, cl_kernel kernel, cl_uint dimensions,
                     const size_t *offset, const size_t *global, const size_t *local,
                     cl_uint num_events, const cl_event *wait_list, cl_event *event) {
    void (*meanwhile)(void) = during;
    cl_int result = answer;
    (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local;
    (void)num_events, (void)wait_list;
    during = NULL;
    answer = CL_SUCCESS;
    if (meanwhile)
        meanwhile();
    return result == CL_SUCCESS ? enqueue(in, false, event) : result;
}

static cl_int order(cl_command_queue in, cl_uint num_events, const cl_event *wait_list,
                    cl_event *event) {
    (void)wait_list;
    return enqueue(in, !num_events, event);
}

static cl_int order_all(cl_command_queue in) { return enqueue(in, true, NULL); }

static cl_int order_listed(cl_command_queue in, cl_uint num_events, const cl_event *list) {
    (void)num_events, (void)list;
    return enqueue(in, false, NULL);
}

/* Markers complete by themselves, as soon as what they wait for has. */
static cl_int status_of(struct object *o) {
    struct object *before = o->waits_for_all ? o->next : NULL;
    while (before && (before->queue != o->queue || status_of(before) <= CL_COMPLETE))
        before = before->next;
    return o->waits_for_all && !before ? CL_COMPLETE : o->status;
}

static cl_int event_info(cl_event event, cl_event_info what, size_t size, void *to, size_t *used) {
    (void)used;
    CHECK(size == sizeof(cl_int));
    struct object *o = (struct object *)event;
    cl_int status = status_of(o);
    memcpy(to, what == CL_EVENT_REFERENCE_COUNT ? &o->references : &status, size);
    return CL_SUCCESS;
}

static cl_int queue_info(cl_command_queue queue, cl_command_queue_info what, size_t size, void *to,
                         size_t *used) {
    (void)used;
    CHECK(what == CL_QUEUE_PROPERTIES);
    memcpy(to, &((struct object *)queue)->properties, size);
    return CL_SUCCESS;
}

static cl_int device_info(cl_device_id id, cl_device_info what, size_t size, void *to,
                          size_t *used) {
    struct object *of = &platform;
    (void)id, (void)used;
    CHECK(what == CL_DEVICE_PLATFORM);
    memcpy(to, &of, size);
    return CL_SUCCESS;
}

static cl_event user_event(cl_context in, cl_int *errcode_ret) {
    (void)in, (void)errcode_ret;
    return (cl_event)make(CL_SUBMITTED);
}

static cl_int set_status(cl_event event, cl_int status) {
    if (status > CL_COMPLETE)
        return CL_INVALID_VALUE;
    ((struct object *)event)->status = status;
    return CL_SUCCESS;
}

static cl_command_queue new_queue(cl_context in, cl_device_id on,
                                  cl_command_queue_properties properties, cl_int *errcode_ret) {
    (void)in, (void)on, (void)errcode_ret;
    struct object *queue = make(0);
    queue->properties = properties;
    return (cl_command_queue)queue;
}

static cl_command_queue new_queue_khr(cl_context in, cl_device_id on,
                                      const cl_queue_properties *properties, cl_int *errcode_ret) {
    (void)properties;
    return new_queue(in, on, 0, errcode_ret);
}

static void *extension(cl_platform_id of, const char *name) {
    CHECK(of == (cl_platform_id)&platform);
    return strcmp(name, "clCreateCommandQueueWithPropertiesKHR") ? NULL : (void *)new_queue_khr;
}

static cl_int nothing(struct object *o) { return (void)o, CL_SUCCESS; }

static void fill_dispatch(void) {
#define ENTRY(name, function) dispatch[KREX_INDEX_##name] = (void *)(function)
    ENTRY(clCreateCommandQueue, new_queue);
    ENTRY(clReleaseCommandQueue, release);
    ENTRY(clGetCommandQueueInfo, queue_info);
    ENTRY(clGetDeviceInfo, device_info);
    ENTRY(clGetEventInfo, event_info);
    ENTRY(clRetainEvent, retain);
    ENTRY(clReleaseEvent, release);
    ENTRY(clFlush, nothing);
    ENTRY(clCreateUserEvent, user_event);
    ENTRY(clSetUserEventStatus, set_status);
    ENTRY(clEnqueueNDRangeKernel, launch);
    ENTRY(clEnqueueMarkerWithWaitList, order);
    ENTRY(clEnqueueBarrierWithWaitList, order);
    ENTRY(clEnqueueBarrier, order_all);
    ENTRY(clEnqueueWaitForEvents, order_listed);
    ENTRY(clGetExtensionFunctionAddressForPlatform, extension);
#undef ENTRY
}

#endif
