/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL types and values that api.def and the hooks need, so that building the shim takes no
 * OpenCL headers. Names and layouts are the vendor's (tests/unit/test_opencl_api.py compares them);
 * only the handles and the callback typedefs are our own. Never include this next to CL/cl.h.
 */
#ifndef KREX_OPENCL_TYPES_H
#define KREX_OPENCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Every object starts with its driver's ICD dispatch table; that is all a loader knows about one,
 * and all we do. The handles are distinct types so that a mix-up doesn't compile. */
struct krex_cl_object {
    void *const *dispatch;
};

/* clang-format off */
#define KREX_CL_HANDLE(name) typedef struct krex_##name { void *const *dispatch; } *name
/* clang-format on */

KREX_CL_HANDLE(cl_platform_id);
KREX_CL_HANDLE(cl_device_id);
KREX_CL_HANDLE(cl_context);
KREX_CL_HANDLE(cl_command_queue);
KREX_CL_HANDLE(cl_mem);
KREX_CL_HANDLE(cl_program);
KREX_CL_HANDLE(cl_kernel);
KREX_CL_HANDLE(cl_event);
KREX_CL_HANDLE(cl_sampler);
#undef KREX_CL_HANDLE

typedef int8_t cl_char;
typedef uint8_t cl_uchar;
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;
typedef cl_ulong cl_properties;

typedef cl_uint cl_platform_info;
typedef cl_bitfield cl_device_type;
typedef cl_uint cl_device_info;
typedef intptr_t cl_device_partition_property;
typedef cl_ulong cl_device_partition_property_ext;
typedef intptr_t cl_context_properties;
typedef cl_uint cl_context_info;
typedef cl_bitfield cl_command_queue_properties;
typedef cl_properties cl_queue_properties;
typedef cl_uint cl_command_queue_info;
typedef cl_uint cl_command_type;
typedef cl_bitfield cl_mem_flags;
typedef cl_bitfield cl_svm_mem_flags;
typedef cl_bitfield cl_map_flags;
typedef cl_bitfield cl_mem_migration_flags;
typedef cl_properties cl_mem_properties;
typedef cl_uint cl_mem_object_type;
typedef cl_uint cl_mem_info;
typedef cl_uint cl_image_info;
typedef cl_uint cl_buffer_create_type;
typedef intptr_t cl_pipe_properties;
typedef cl_uint cl_pipe_info;
typedef cl_uint cl_addressing_mode;
typedef cl_uint cl_filter_mode;
typedef cl_uint cl_sampler_info;
typedef cl_properties cl_sampler_properties;
typedef cl_uint cl_program_info;
typedef cl_uint cl_program_build_info;
typedef cl_uint cl_kernel_info;
typedef cl_uint cl_kernel_arg_info;
typedef cl_uint cl_kernel_work_group_info;
typedef cl_uint cl_kernel_sub_group_info;
typedef cl_uint cl_kernel_exec_info;
typedef cl_uint cl_event_info;
typedef cl_uint cl_profiling_info;

/* Passed on by pointer, never looked into. */
typedef struct krex_cl_image_format cl_image_format;
typedef struct krex_cl_image_desc cl_image_desc;

/* GL and EGL sharing. */
typedef unsigned int cl_GLuint;
typedef int cl_GLint;
typedef unsigned int cl_GLenum;
typedef struct krex_cl_gl_sync *cl_GLsync;
typedef cl_uint cl_gl_object_type;
typedef cl_uint cl_gl_texture_info;
typedef cl_uint cl_gl_context_info;
typedef void *CLeglImageKHR;
typedef void *CLeglDisplayKHR;
typedef void *CLeglSyncKHR;
typedef intptr_t cl_egl_image_properties_khr;

/* Callbacks: the headers spell them out in each parameter list, api.def uses these names. */
typedef void (*krex_cl_context_notify)(const char *, const void *, size_t, void *);
typedef void (*krex_cl_context_destroyed)(cl_context, void *);
typedef void (*krex_cl_mem_destroyed)(cl_mem, void *);
typedef void (*krex_cl_program_notify)(cl_program, void *);
typedef void (*krex_cl_event_notify)(cl_event, cl_int, void *);
typedef void (*krex_cl_svm_free)(cl_command_queue, cl_uint, void **, void *);
typedef void (*krex_cl_native_kernel)(void *);

/* Where a device is, as its driver says: CL_DEVICE_PCI_BUS_INFO_KHR, CL_DEVICE_TOPOLOGY_AMD. */
typedef struct {
    cl_uint pci_domain;
    cl_uint pci_bus;
    cl_uint pci_device;
    cl_uint pci_function;
} cl_device_pci_bus_info_khr;

typedef union {
    struct {
        cl_uint type;
        cl_uint data[5];
    } raw;
    struct {
        cl_uint type;
        cl_char unused[17];
        cl_uchar bus; /* the vendor has char here, which is wrong from bus 0x80 on */
        cl_uchar device;
        cl_uchar function;
    } pcie;
} cl_device_topology_amd;

#define CL_FALSE 0
#define CL_TRUE 1

#define CL_SUCCESS 0
#define CL_DEVICE_NOT_FOUND -1
#define CL_OUT_OF_RESOURCES -5
#define CL_OUT_OF_HOST_MEMORY -6
#define CL_INVALID_VALUE -30
#define CL_INVALID_PLATFORM -32
#define CL_INVALID_DEVICE -33
#define CL_INVALID_CONTEXT -34
#define CL_INVALID_COMMAND_QUEUE -36
#define CL_INVALID_MEM_OBJECT -38
#define CL_INVALID_EVENT_WAIT_LIST -57
#define CL_INVALID_EVENT -58
#define CL_INVALID_OPERATION -59

#define CL_PLATFORM_VERSION 0x0901
#define CL_PLATFORM_NAME 0x0902
#define CL_PLATFORM_VENDOR 0x0903
#define CL_PLATFORM_EXTENSIONS 0x0904

#define CL_DEVICE_TYPE_DEFAULT (1 << 0)
#define CL_DEVICE_TYPE_CPU (1 << 1)
#define CL_DEVICE_TYPE_GPU (1 << 2)
#define CL_DEVICE_TYPE_ACCELERATOR (1 << 3)
#define CL_DEVICE_TYPE_CUSTOM (1 << 4)
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFF

#define CL_DEVICE_TYPE 0x1000
#define CL_DEVICE_VENDOR_ID 0x1001
#define CL_DEVICE_NAME 0x102B
#define CL_DEVICE_VENDOR 0x102C
#define CL_DEVICE_VERSION 0x102F
#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_DEVICE_PLATFORM 0x1031
#define CL_DEVICE_PARENT_DEVICE 0x1042
#define CL_DEVICE_UUID_KHR 0x106A
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#define CL_DEVICE_TOPOLOGY_AMD 0x4037
#define CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD 1
/* cl_nv_device_attribute_query: in the extension's text only, no header has these three. */
#define CL_DEVICE_PCI_BUS_ID_NV 0x4008
#define CL_DEVICE_PCI_SLOT_ID_NV 0x4009
#define CL_DEVICE_PCI_DOMAIN_ID_NV 0x400A

#define CL_CONTEXT_REFERENCE_COUNT 0x1080
#define CL_CONTEXT_DEVICES 0x1081
#define CL_CONTEXT_PROPERTIES 0x1082
#define CL_CONTEXT_NUM_DEVICES 0x1083
#define CL_CONTEXT_PLATFORM 0x1084

#define CL_QUEUE_CONTEXT 0x1090
#define CL_QUEUE_DEVICE 0x1091
#define CL_QUEUE_REFERENCE_COUNT 0x1092
#define CL_QUEUE_PROPERTIES 0x1093
#define CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE (1 << 0)
#define CL_QUEUE_PROFILING_ENABLE (1 << 1)
#define CL_PROFILING_COMMAND_START 0x1282
#define CL_PROFILING_COMMAND_END 0x1283
#define CL_QUEUE_ON_DEVICE (1 << 2)

#define CL_MEM_REFERENCE_COUNT 0x1105
#define CL_MEM_CONTEXT 0x1106

#define CL_EVENT_COMMAND_QUEUE 0x11D0
#define CL_EVENT_COMMAND_TYPE 0x11D1
#define CL_EVENT_REFERENCE_COUNT 0x11D2
#define CL_EVENT_COMMAND_EXECUTION_STATUS 0x11D3
#define CL_EVENT_CONTEXT 0x11D4
#define CL_COMMAND_USER 0x1204

#define CL_COMPLETE 0x0
#define CL_RUNNING 0x1
#define CL_SUBMITTED 0x2
#define CL_QUEUED 0x3

#endif
