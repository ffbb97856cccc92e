/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

/* Bytes: value, element, width and rows in elements. */
static hipError_t fill(void *to, size_t pitch, unsigned value, unsigned element, size_t width,
                       size_t rows, hipStream_t stream) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    struct drv_fill f = {(uintptr_t)to, width, rows, pitch, value, element};
    return r ? r : hip_result(drv_fill(s, &f));
}

static unsigned byte(int value) { return (unsigned char)value; }

hipError_t hipMemset(void *dst, int value, size_t sizeBytes) {
    return fill(dst, 0, byte(value), 1, sizeBytes, 1, NULL);
}

hipError_t hipMemsetAsync(void *dst, int value, size_t sizeBytes, hipStream_t stream) {
    return fill(dst, 0, byte(value), 1, sizeBytes, 1, stream);
}

hipError_t hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height) {
    return fill(dst, pitch, byte(value), 1, width, height, NULL);
}

hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
                            hipStream_t stream) {
    return fill(dst, pitch, byte(value), 1, width, height, stream);
}

/* Planes follow each other as rows do where all of a plane's rows are there; else each is a fill. */
static hipError_t solid(hipPitchedPtr p, int value, hipExtent extent, hipStream_t stream) {
    hipError_t r = hipSuccess;
    size_t slice = p.pitch * (p.ysize ? p.ysize : extent.height);
    if (slice == p.pitch * extent.height)
        return fill(p.ptr, p.pitch, byte(value), 1, extent.width, extent.height * extent.depth,
                    stream);
    for (size_t z = 0; !r && z < extent.depth; z++)
        r = fill((char *)p.ptr + z * slice, p.pitch, byte(value), 1, extent.width, extent.height,
                 stream);
    return r;
}

hipError_t hipMemset3D(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent) {
    return solid(pitchedDevPtr, value, extent, NULL);
}

hipError_t hipMemset3DAsync(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent,
                            hipStream_t stream) {
    return solid(pitchedDevPtr, value, extent, stream);
}

#define FILL(bits, type, flat_type)                                                                \
    hipError_t hipMemsetD##bits(hipDeviceptr_t dest, type value, size_t count) {                   \
        return fill(dest, 0, (unsigned)value, (bits) / 8, count, 1, NULL);                         \
    }                                                                                              \
    hipError_t hipMemsetD##bits##Async(hipDeviceptr_t dest, type value, size_t count,              \
                                       hipStream_t stream) {                                       \
        return fill(dest, 0, (unsigned)value, (bits) / 8, count, 1, stream);                       \
    }                                                                                              \
    hipError_t hipMemsetD2D##bits(hipDeviceptr_t dst, size_t dstPitch, flat_type value,            \
                                  size_t width, size_t height) {                                   \
        return fill(dst, dstPitch, (unsigned)value, (bits) / 8, width, height, NULL);              \
    }                                                                                              \
    hipError_t hipMemsetD2D##bits##Async(hipDeviceptr_t dst, size_t dstPitch, flat_type value,     \
                                         size_t width, size_t height, hipStream_t stream) {        \
        return fill(dst, dstPitch, (unsigned)value, (bits) / 8, width, height, stream);            \
    }

FILL(8, unsigned char, unsigned char)
FILL(16, unsigned short, unsigned short)
FILL(32, int, unsigned int)
