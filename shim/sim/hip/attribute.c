/* SPDX-License-Identifier: Apache-2.0
 *
 * hipDeviceGetAttribute: a card of the MI300X's class, where the model has no number. What the simulated
 * driver does not do, it says here.
 */
#include "attribute.h"

/* What is missing is 0. */
static const int constant[HIP_ATTRIBUTES] = {
    [HIP_ATTRIBUTE_ECC] = 1,
    [HIP_ATTRIBUTE_COPY_ENGINES] = 2,
    [HIP_ATTRIBUTE_MAPS_HOST] = 1,
    [HIP_ATTRIBUTE_HOST_POINTERS] = 1,
    [HIP_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
    [HIP_ATTRIBUTE_COOPERATIVE] = 1,
    [HIP_ATTRIBUTE_OVERLAP] = 1,
    [HIP_ATTRIBUTE_MAJOR] = 9, /* gfx942 */
    [HIP_ATTRIBUTE_MINOR] = 4,
    [HIP_ATTRIBUTE_MANAGED] = 1,
    [HIP_ATTRIBUTE_BLOCKS_PER_CU] = 32,
    [HIP_ATTRIBUTE_BLOCK_X] = 1024,
    [HIP_ATTRIBUTE_BLOCK_Y] = 1024,
    [HIP_ATTRIBUTE_BLOCK_Z] = 1024,
    [HIP_ATTRIBUTE_GRID_X] = 2147483647,
    [HIP_ATTRIBUTE_GRID_Y] = 65536,
    [HIP_ATTRIBUTE_GRID_Z] = 65536,
    [HIP_ATTRIBUTE_THREADS_DIM] = 1024,
    [HIP_ATTRIBUTE_THREADS_PER_BLOCK] = 1024,
    [HIP_ATTRIBUTE_THREADS_PER_CU] = 2048,
    [HIP_ATTRIBUTE_PITCH] = 2147483647,
    [HIP_ATTRIBUTE_REGISTERS_PER_BLOCK] = 65536,
    [HIP_ATTRIBUTE_REGISTERS_PER_CU] = 131072,
    [HIP_ATTRIBUTE_SHARED_PER_BLOCK] = 65536,
    [HIP_ATTRIBUTE_SHARED_OPTIN] = 65536,
    [HIP_ATTRIBUTE_SHARED_PER_CU] = 65536,
    [HIP_ATTRIBUTE_PRIORITIES] = 1,
    [HIP_ATTRIBUTE_TEXTURE_ALIGNMENT] = 256,
    [HIP_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 256,
    [HIP_ATTRIBUTE_CONSTANT_BYTES] = 2147483647,
    [HIP_ATTRIBUTE_UNIFIED_ADDRESSES] = 1,
    [HIP_ATTRIBUTE_WARP] = 64,
    [HIP_ATTRIBUTE_POOLS] = 1,
    [HIP_ATTRIBUTE_REGISTERS_HOST] = 1,
};

/* Those that only AMD has. */
enum amd {
    CLOCK_INSTRUCTION_RATE = 10000,
    SHARED_PER_CU = 10002,
    LARGE_BAR = 10011,
    WAITS_FOR_VALUES = 10013,
    PHYSICAL_CUS = 10015,
    FINE_GRAIN = 10016,
    WALL_CLOCK_RATE = 10017,
    XCCS = 10018,
    VGPRS = 10019,
    CHIP_ID = 10020,
    END = 10021,
};

enum { CLOCK_KHZ = 100000, MOST_VGPRS = 512, MI300X = 0x74a1 };

static int of_amd(const struct drv_device *d, enum amd attribute) {
    switch (attribute) {
    case CLOCK_INSTRUCTION_RATE:
    case WALL_CLOCK_RATE:
        return CLOCK_KHZ;
    case SHARED_PER_CU:
        return constant[HIP_ATTRIBUTE_SHARED_PER_CU];
    case PHYSICAL_CUS:
        return (int)d->is->multiprocessors;
    case LARGE_BAR:
    case WAITS_FOR_VALUES:
    case FINE_GRAIN:
    case XCCS:
        return 1;
    case VGPRS:
        return MOST_VGPRS;
    case CHIP_ID:
        return MI300X;
    default:
        return 0;
    }
}

int hip_attribute(const struct drv_device *d, enum hip_attribute attribute) {
    const struct krex_sim_device *is = d->is;
    switch (attribute) {
    case HIP_ATTRIBUTE_CLOCK:
        return (int)is->clock_khz;
    case HIP_ATTRIBUTE_L2:
        return (int)is->l2_bytes;
    case HIP_ATTRIBUTE_BUS_BITS:
        return (int)is->bus_bits;
    case HIP_ATTRIBUTE_MEMORY_CLOCK:
        return (int)is->memory_clock_khz;
    case HIP_ATTRIBUTE_BOARD:
        return (int)is->number;
    case HIP_ATTRIBUTE_CUS:
        return (int)is->multiprocessors;
    case HIP_ATTRIBUTE_PCI_BUS:
        return (int)drv_bus(d);
    case HIP_ATTRIBUTE_MEMORY:
        return is->memory > INT32_MAX ? INT32_MAX : (int)is->memory;
    default:
        return constant[attribute];
    }
}

hipError_t hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId) {
    struct drv_device *d;
    hipError_t r = hip_device(deviceId, &d);
    bool common = attr < HIP_ATTRIBUTES, amd = attr >= CLOCK_INSTRUCTION_RATE && attr < END;
    if (r || !pi || (!common && !amd))
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pi = common ? hip_attribute(d, (enum hip_attribute)attr) : of_amd(d, (enum amd)attr);
    return r;
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
    hipError_t r = hipDeviceGetAttribute(major, HIP_ATTRIBUTE_MAJOR, device);
    return r ? r : hipDeviceGetAttribute(minor, HIP_ATTRIBUTE_MINOR, device);
}
