/* SPDX-License-Identifier: Apache-2.0
 *
 * hipGetDeviceProperties, of the two layouts that programs were compiled with: ROCm 6 has another one
 * than ROCm 5, and another name for it.
 */
#include <stdio.h>
#include <string.h>

#include "attribute.h"

enum { NAME = 256 };

#define ARCHITECTURE "gfx942:sramecc+:xnack-"

struct krex_hipDeviceProp_tR0000 {
    char name[NAME];
    size_t memory, shared_per_block;
    int registers_per_block, warp, threads_per_block, threads_dim[3], grid[3];
    int clock, memory_clock, bus_bits;
    size_t constant_bytes;
    int major, minor, cus, l2, threads_per_cu, compute_mode, clock_instruction_rate;
    unsigned int features;
    int concurrent_kernels, pci_domain, pci_bus, pci_device;
    size_t shared_per_cu;
    int multi_board, maps_host, gcn;
    char architecture[NAME];
    int integrated, cooperative, cooperative_multi, texture_1d_linear, texture_1d, texture_2d[2],
        texture_3d[3];
    unsigned int *hdp_memory, *hdp_registers;
    size_t pitch, texture_alignment, texture_pitch_alignment;
    int timeout, ecc, tcc, unmatched[4], large_bar, revision, managed, direct_managed,
        concurrent_managed, pageable, pageable_tables;
};
_Static_assert(sizeof(struct krex_hipDeviceProp_tR0000) == 792 &&
                   offsetof(struct krex_hipDeviceProp_tR0000, architecture) == 396 &&
                   offsetof(struct krex_hipDeviceProp_tR0000, managed) == 772,
               "as ROCm 5 has it");

struct krex_hipDeviceProp_tR0600 {
    char name[NAME], uuid[16], luid[8];
    unsigned int luid_mask;
    size_t memory, shared_per_block;
    int registers_per_block, warp;
    size_t pitch;
    int threads_per_block, threads_dim[3], grid[3], clock;
    size_t constant_bytes;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int overlap, cus, timeout, integrated, maps_host, compute_mode;
    int textures_and_surfaces[40];
    size_t surface_alignment;
    int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, copy_engines,
        unified_addresses, memory_clock, bus_bits, l2, persisting_l2, threads_per_cu, priorities,
        l1_global, l1_local;
    size_t shared_per_multiprocessor;
    int registers_per_cu, managed, multi_board, board, host_atomics, single_to_double, pageable,
        concurrent_managed, preemption, host_pointers, cooperative, cooperative_multi;
    size_t shared_optin;
    int pageable_tables, direct_managed, blocks_per_cu, window;
    size_t reserved_shared;
    int registers_host, sparse, registers_read_only, semaphores, pools, rdma;
    unsigned int rdma_flush;
    int rdma_order;
    unsigned int pool_handles;
    int deferred, ipc_events, clusters, function_pointers, reserved[63], hip_reserved[32];
    char architecture[NAME];
    size_t shared_per_cu;
    int clock_instruction_rate;
    unsigned int features;
    unsigned int *hdp_memory, *hdp_registers;
    int unmatched[4], large_bar, revision;
};
_Static_assert(sizeof(struct krex_hipDeviceProp_tR0600) == 1472 &&
                   offsetof(struct krex_hipDeviceProp_tR0600, ecc) == 580 &&
                   offsetof(struct krex_hipDeviceProp_tR0600, managed) == 652 &&
                   offsetof(struct krex_hipDeviceProp_tR0600, architecture) == 1160 &&
                   offsetof(struct krex_hipDeviceProp_tR0600, large_bar) == 1464,
               "as ROCm 6 has it");

/* What both have, under the same names. */
#define FILL(to, d)                                                                                \
    do {                                                                                           \
        snprintf((to)->name, NAME, HIP_SIM_NAME, (d)->is->name);                                   \
        snprintf((to)->architecture, NAME, "%s", ARCHITECTURE);                                    \
        (to)->memory = (d)->is->memory;                                                            \
        (to)->shared_per_block = (size_t)hip_attribute(d, HIP_ATTRIBUTE_SHARED_PER_BLOCK);         \
        (to)->shared_per_cu = (size_t)hip_attribute(d, HIP_ATTRIBUTE_SHARED_PER_CU);               \
        (to)->registers_per_block = hip_attribute(d, HIP_ATTRIBUTE_REGISTERS_PER_BLOCK);           \
        (to)->warp = hip_attribute(d, HIP_ATTRIBUTE_WARP);                                         \
        (to)->pitch = (size_t)hip_attribute(d, HIP_ATTRIBUTE_PITCH);                               \
        (to)->threads_per_block = hip_attribute(d, HIP_ATTRIBUTE_THREADS_PER_BLOCK);               \
        for (int i = 0; i < 3; i++) {                                                              \
            (to)->threads_dim[i] = hip_attribute(d, HIP_ATTRIBUTE_BLOCK_X + i);                    \
            (to)->grid[i] = hip_attribute(d, HIP_ATTRIBUTE_GRID_X + i);                            \
        }                                                                                          \
        (to)->clock = hip_attribute(d, HIP_ATTRIBUTE_CLOCK);                                       \
        (to)->memory_clock = hip_attribute(d, HIP_ATTRIBUTE_MEMORY_CLOCK);                         \
        (to)->bus_bits = hip_attribute(d, HIP_ATTRIBUTE_BUS_BITS);                                 \
        (to)->constant_bytes = (size_t)hip_attribute(d, HIP_ATTRIBUTE_CONSTANT_BYTES);             \
        (to)->major = hip_attribute(d, HIP_ATTRIBUTE_MAJOR);                                       \
        (to)->minor = hip_attribute(d, HIP_ATTRIBUTE_MINOR);                                       \
        (to)->cus = hip_attribute(d, HIP_ATTRIBUTE_CUS);                                           \
        (to)->l2 = hip_attribute(d, HIP_ATTRIBUTE_L2);                                             \
        (to)->threads_per_cu = hip_attribute(d, HIP_ATTRIBUTE_THREADS_PER_CU);                     \
        (to)->concurrent_kernels = hip_attribute(d, HIP_ATTRIBUTE_CONCURRENT_KERNELS);             \
        (to)->pci_bus = hip_attribute(d, HIP_ATTRIBUTE_PCI_BUS);                                   \
        (to)->maps_host = hip_attribute(d, HIP_ATTRIBUTE_MAPS_HOST);                               \
        (to)->cooperative = hip_attribute(d, HIP_ATTRIBUTE_COOPERATIVE);                           \
        (to)->ecc = hip_attribute(d, HIP_ATTRIBUTE_ECC);                                           \
        (to)->managed = hip_attribute(d, HIP_ATTRIBUTE_MANAGED);                                   \
        (to)->texture_alignment = (size_t)hip_attribute(d, HIP_ATTRIBUTE_TEXTURE_ALIGNMENT);       \
        (to)->texture_pitch_alignment =                                                            \
            (size_t)hip_attribute(d, HIP_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);                       \
        (to)->large_bar = 1;                                                                       \
    } while (0)

hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *prop, int deviceId) {
    struct drv_device *d;
    hipError_t r = hip_device(deviceId, &d);
    if (r || !prop)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    memset(prop, 0, sizeof *prop);
    FILL(prop, d);
    return r;
}

/* What programs call that were compiled before there was another layout. */
hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId) {
    return hipGetDevicePropertiesR0000((hipDeviceProp_tR0000 *)(void *)prop, deviceId);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *prop, int deviceId) {
    hipUUID uuid;
    struct drv_device *d;
    hipError_t r = hip_device(deviceId, &d);
    if (r || !prop)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    hipDeviceProp_tR0600 *to = prop;
    memset(to, 0, sizeof *to);
    FILL(to, d);
    hipDeviceGetUuid(&uuid, deviceId);
    memcpy(to->uuid, &uuid, sizeof to->uuid);
    to->overlap = hip_attribute(d, HIP_ATTRIBUTE_OVERLAP);
    to->copy_engines = hip_attribute(d, HIP_ATTRIBUTE_COPY_ENGINES);
    to->unified_addresses = hip_attribute(d, HIP_ATTRIBUTE_UNIFIED_ADDRESSES);
    to->priorities = hip_attribute(d, HIP_ATTRIBUTE_PRIORITIES);
    to->shared_per_multiprocessor = to->shared_per_cu;
    to->shared_optin = (size_t)hip_attribute(d, HIP_ATTRIBUTE_SHARED_OPTIN);
    to->registers_per_cu = hip_attribute(d, HIP_ATTRIBUTE_REGISTERS_PER_CU);
    to->blocks_per_cu = hip_attribute(d, HIP_ATTRIBUTE_BLOCKS_PER_CU);
    to->host_pointers = hip_attribute(d, HIP_ATTRIBUTE_HOST_POINTERS);
    to->registers_host = hip_attribute(d, HIP_ATTRIBUTE_REGISTERS_HOST);
    to->pools = hip_attribute(d, HIP_ATTRIBUTE_POOLS);
    return r;
}

/* One device is as good as another. */
hipError_t hipChooseDevice(int *device, const hipDeviceProp_t *prop) {
    hipError_t r = hip_ready();
    if (r || !device || !prop)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *device = 0;
    return r;
}

hipError_t hipChooseDeviceR0000(int *device, const hipDeviceProp_tR0000 *prop) {
    return hipChooseDevice(device, (const hipDeviceProp_t *)(const void *)prop);
}

hipError_t hipChooseDeviceR0600(int *device, const hipDeviceProp_tR0600 *prop) {
    return hipChooseDevice(device, (const hipDeviceProp_t *)(const void *)prop);
}
