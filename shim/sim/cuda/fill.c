/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned element, size_t width,
                     size_t rows, CUstream handle) {
    struct drv_stream *stream;
    CUresult r = cu_stream(handle, &stream);
    struct drv_fill f = {to, width, rows, pitch, value, element};
    return r ? r : cu_result(drv_fill(stream, &f));
}

#define FILL(bits, type, synchronous, synchronous_2d)                                              \
    CUresult synchronous(CUdeviceptr dstDevice, type value, size_t N) {                            \
        return fill(dstDevice, 0, value, (bits) / 8, N, 1, NULL);                                  \
    }                                                                                              \
    CUresult cuMemsetD##bits##Async(CUdeviceptr dstDevice, type value, size_t N,                   \
                                    CUstream hStream) {                                            \
        return fill(dstDevice, 0, value, (bits) / 8, N, 1, hStream);                               \
    }                                                                                              \
    CUresult synchronous_2d(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width,      \
                            size_t Height) {                                                       \
        return fill(dstDevice, dstPitch, value, (bits) / 8, Width, Height, NULL);                  \
    }                                                                                              \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr dstDevice, size_t dstPitch, type value,          \
                                      size_t Width, size_t Height, CUstream hStream) {             \
        return fill(dstDevice, dstPitch, value, (bits) / 8, Width, Height, hStream);               \
    }

FILL(8, unsigned char, cuMemsetD8_v2, cuMemsetD2D8_v2)
FILL(16, unsigned short, cuMemsetD16_v2, cuMemsetD2D16_v2)
FILL(32, unsigned int, cuMemsetD32_v2, cuMemsetD2D32_v2)
