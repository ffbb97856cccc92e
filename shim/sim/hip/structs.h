/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendor's structures that the face looks into; types.h only names them.
 */
#ifndef KREX_SIM_HIP_STRUCTS_H
#define KREX_SIM_HIP_STRUCTS_H

#include "face.h"

struct position {
    size_t x, y, z;
};

struct krex_hipMemcpy3DParms {
    hipArray_t src_array;
    struct position src_at;
    hipPitchedPtr src;
    hipArray_t dst_array;
    struct position dst_at;
    hipPitchedPtr dst;
    hipExtent extent;
    hipMemcpyKind kind;
};

struct krex_hip_Memcpy2D {
    size_t src_x, src_y;
    unsigned int src_type;
    const void *src_host;
    hipDeviceptr_t src_device;
    hipArray_t src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    unsigned int dst_type;
    void *dst_host;
    hipDeviceptr_t dst_device;
    hipArray_t dst_array;
    size_t dst_pitch;
    size_t width, height;
};

struct krex_HIP_MEMCPY3D {
    size_t src_x, src_y, src_z, src_lod;
    unsigned int src_type;
    const void *src_host;
    hipDeviceptr_t src_device;
    hipArray_t src_array;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    unsigned int dst_type;
    void *dst_host;
    hipDeviceptr_t dst_device;
    hipArray_t dst_array;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
};

/* What they mean. NOT_SUPPORTED: arrays, of which there are none. */
hipError_t hip_copy_of_parms(const hipMemcpy3DParms *p, struct drv_copy *copy);
hipError_t hip_copy_of_solid(const HIP_MEMCPY3D *p, struct drv_copy *copy);

struct krex_hipPointerAttribute_t {
    unsigned int type;
    int device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned int flags;
};

struct krex_hipFuncAttributes {
    int binary_version, cache_mode;
    size_t const_bytes, local_bytes;
    int max_dynamic_shared, max_threads, registers, carveout, ptx_version;
    size_t shared_bytes;
};

struct krex_hipMemPoolProps {
    unsigned int type, handle_types;
    hipMemLocation location;
    void *security;
    size_t most;
    char rest[56];
};

struct krex_hipMemAccessDesc {
    hipMemLocation location;
    unsigned int flags;
};

/* Operations on words, in a stream. */
struct krex_hipStreamBatchMemOpParams {
    unsigned int operation;
    hipDeviceptr_t address;
    union {
        uint32_t value;
        uint64_t value64;
    };
    unsigned int flags;
    hipDeviceptr_t alias;
    uint64_t pad;
};

#endif
