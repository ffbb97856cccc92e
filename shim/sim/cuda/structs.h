/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendor's structures that the face looks into; types.h only names them.
 */
#ifndef KREX_SIM_CUDA_STRUCTS_H
#define KREX_SIM_CUDA_STRUCTS_H

#include "cuda/types.h"

enum { CU_SIM_HOST = 1, CU_SIM_DEVICE, CU_SIM_ARRAY, CU_SIM_UNIFIED }; /* kinds of memory */

/* One end of a copy in two or three dimensions. */
struct krex_CUDA_MEMCPY2D {
    size_t src_x, src_y;
    unsigned int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    unsigned int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    size_t dst_pitch;
    size_t width, height;
};

struct krex_CUDA_MEMCPY3D {
    size_t src_x, src_y, src_z, src_lod;
    unsigned int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    void *src_context; /* of the form for peers */
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    unsigned int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    void *dst_context;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
};

struct krex_CUDA_MEMCPY3D_PEER {
    struct krex_CUDA_MEMCPY3D copy; /* the same, with contexts where that has nothing */
};

struct krex_CUlaunchAttribute {
    unsigned int id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
    } value;
};

enum { CU_SIM_ATTRIBUTE_COOPERATIVE = 2 };

/* Operations on words, in a stream. */
struct krex_CUstreamBatchMemOpParams {
    unsigned int operation;
    CUdeviceptr address;
    union {
        uint32_t value;
        uint64_t value64;
    };
    unsigned int flags;
    CUdeviceptr alias;
    uint64_t pad;
};

enum {
    CU_SIM_WAIT_32 = 1,
    CU_SIM_WRITE_32 = 2,
    CU_SIM_FLUSH = 3,
    CU_SIM_WAIT_64 = 4,
    CU_SIM_WRITE_64 = 5,
    CU_SIM_BARRIER = 6,
};

struct krex_CUmemPoolProps {
    unsigned int type, handle_types;
    CUmemLocation location;
    void *security;
    size_t most;
    char rest[56];
};

struct krex_CUmemAccessDesc {
    CUmemLocation location;
    unsigned int flags;
};

enum { CU_SIM_LOCATION_DEVICE = 1 };

struct krex_CUdevResource {
    unsigned int type;
    char pad[92];
    unsigned int sms, smallest, alignment, flags; /* of CU_SIM_SM */
    char rest[24];
    struct krex_CUdevResource *next;
};

enum { CU_SIM_SM = 1 };

#endif
