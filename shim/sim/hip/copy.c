/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies. The direction that a call names decides nothing: the host's memory and the devices' are told
 * apart by where they lie.
 */
#include "face.h"
#include "structs.h"

enum { MOST_KIND = 4, WITHOUT_CUS = 1024 };

static hipError_t copy(const struct drv_copy *c, hipStream_t stream, bool async) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    return r ? r : hip_result(drv_copy(s, c, async));
}

static hipError_t plain(void *to, const void *from, size_t bytes, hipStream_t stream, bool async) {
    struct drv_copy c = {(uintptr_t)to, (uintptr_t)from, bytes, 1, 1, 0, 0, 0, 0};
    return copy(&c, stream, async);
}

static bool is_kind(hipMemcpyKind kind) { return kind <= MOST_KIND || kind == WITHOUT_CUS; }

hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind) {
    return is_kind(kind) ? plain(dst, src, sizeBytes, NULL, false)
                         : hip_error(HIP_INVALID_DIRECTION);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                          hipStream_t stream) {
    return is_kind(kind) ? plain(dst, src, sizeBytes, stream, true)
                         : hip_error(HIP_INVALID_DIRECTION);
}

/* In the stream, and waited for. */
hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                               hipStream_t stream) {
    hipError_t r = hipMemcpyAsync(dst, src, sizeBytes, kind, stream);
    return r ? r : hipStreamSynchronize(stream);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t sizeBytes) {
    return plain(dst, src, sizeBytes, NULL, false);
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t sizeBytes) {
    return plain(dst, src, sizeBytes, NULL, false);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes) {
    return plain(dst, src, sizeBytes, NULL, false);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t sizeBytes,
                              hipStream_t stream) {
    return plain(dst, src, sizeBytes, stream, true);
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream) {
    return plain(dst, src, sizeBytes, stream, true);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes,
                              hipStream_t stream) {
    return plain(dst, src, sizeBytes, stream, true);
}

hipError_t hipMemcpyPeer(void *dst, int dstDeviceId, const void *src, int srcDeviceId,
                         size_t sizeBytes) {
    struct drv_device *d;
    hipError_t r = hip_device(dstDeviceId, &d);
    if (!r)
        r = hip_device(srcDeviceId, &d);
    return r ? r : plain(dst, src, sizeBytes, NULL, false);
}

hipError_t hipMemcpyPeerAsync(void *dst, int dstDeviceId, const void *src, int srcDevice,
                              size_t sizeBytes, hipStream_t stream) {
    struct drv_device *d;
    hipError_t r = hip_device(dstDeviceId, &d);
    if (!r)
        r = hip_device(srcDevice, &d);
    return r ? r : plain(dst, src, sizeBytes, stream, true);
}

hipError_t hipMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                               hipMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                               size_t *failIdx, hipStream_t stream) {
    (void)attrs;
    (void)attrsIdxs;
    (void)numAttrs;
    hipError_t r = dsts && srcs && sizes ? hipSuccess : hip_error(HIP_INVALID_VALUE);
    for (size_t i = 0; !r && i < count; i++)
        r = plain(dsts[i], srcs[i], sizes[i], stream, true);
    if (r && failIdx)
        *failIdx = SIZE_MAX;
    return r;
}

static hipError_t flat(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t rows, hipStream_t stream, bool async) {
    struct drv_copy c = {(uintptr_t)to, (uintptr_t)from, width, rows, 1,
                         to_pitch,      from_pitch,      0,     0};
    if (to_pitch < width || from_pitch < width)
        return hip_error(HIP_INVALID_VALUE);
    return copy(&c, stream, async);
}

hipError_t hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                       size_t height, hipMemcpyKind kind) {
    return is_kind(kind) ? flat(dst, dpitch, src, spitch, width, height, NULL, false)
                         : hip_error(HIP_INVALID_DIRECTION);
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream) {
    return is_kind(kind) ? flat(dst, dpitch, src, spitch, width, height, stream, true)
                         : hip_error(HIP_INVALID_DIRECTION);
}

static hipError_t of_parms(const hipMemcpy3DParms *p, hipStream_t stream, bool async) {
    struct drv_copy c;
    hipError_t r = hip_copy_of_parms(p, &c);
    return r ? r : copy(&c, stream, async);
}

hipError_t hipMemcpy3D(const hipMemcpy3DParms *p) { return of_parms(p, NULL, false); }

hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *p, hipStream_t stream) {
    return of_parms(p, stream, true);
}

static hipError_t of_solid(const HIP_MEMCPY3D *p, hipStream_t stream, bool async) {
    struct drv_copy c;
    hipError_t r = hip_copy_of_solid(p, &c);
    return r ? r : copy(&c, stream, async);
}

hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D *pCopy) { return of_solid(pCopy, NULL, false); }

hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *pCopy, hipStream_t stream) {
    return of_solid(pCopy, stream, true);
}

static hipError_t of_flat(const hip_Memcpy2D *p, hipStream_t stream, bool async) {
    if (!p)
        return hip_error(HIP_INVALID_VALUE);
    HIP_MEMCPY3D solid = {
        .src_x = p->src_x,
        .src_y = p->src_y,
        .src_type = p->src_type,
        .src_host = p->src_host,
        .src_device = p->src_device,
        .src_pitch = p->src_pitch,
        .dst_x = p->dst_x,
        .dst_y = p->dst_y,
        .dst_type = p->dst_type,
        .dst_host = p->dst_host,
        .dst_device = p->dst_device,
        .dst_pitch = p->dst_pitch,
        .width = p->width,
        .height = p->height,
        .depth = 1,
    };
    return of_solid(&solid, stream, async);
}

hipError_t hipMemcpyParam2D(const hip_Memcpy2D *pCopy) { return of_flat(pCopy, NULL, false); }

hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D *pCopy, hipStream_t stream) {
    return of_flat(pCopy, stream, true);
}

hipError_t hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *pCopy) {
    return of_flat(pCopy, NULL, false);
}
