/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies. Where a call names the direction it is believed only as far as the addresses say the same:
 * the host's memory and the devices' are told apart by where they lie.
 */
#include "face.h"
#include "structs.h"

static CUresult plain(uint64_t to, uint64_t from, size_t bytes, CUstream handle, bool async) {
    struct drv_stream *stream;
    CUresult r = cu_stream(handle, &stream);
    struct drv_copy copy = {to, from, bytes, 1, 1, 0, 0, 0, 0};
    return r ? r : cu_result(drv_copy(stream, &copy, async));
}

static bool is_device(uint64_t address) {
    struct drv_memory memory;
    return drv_memory_is_device(address) || drv_memory_find(address, &memory);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return plain(dst, src, ByteCount, NULL, false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return plain(dst, src, ByteCount, hStream, true);
}

static CUresult to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream,
                          bool async) {
    if (bytes && !drv_ready() && !is_device(to))
        return CUDA_ERROR_INVALID_VALUE;
    return plain(to, (uintptr_t)from, bytes, stream, async);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return to_device(dstDevice, srcHost, ByteCount, NULL, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                              CUstream hStream) {
    return to_device(dstDevice, srcHost, ByteCount, hStream, true);
}

static CUresult from_device(void *to, CUdeviceptr from, size_t bytes, CUstream stream, bool async) {
    if (bytes && !drv_ready() && !is_device(from))
        return CUDA_ERROR_INVALID_VALUE;
    return plain((uintptr_t)to, from, bytes, stream, async);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return from_device(dstHost, srcDevice, ByteCount, NULL, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
    return from_device(dstHost, srcDevice, ByteCount, hStream, true);
}

static CUresult within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
                       bool async) {
    if (bytes && !drv_ready() && (!is_device(to) || !is_device(from)))
        return CUDA_ERROR_INVALID_VALUE;
    return plain(to, from, bytes, stream, async);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return within(dstDevice, srcDevice, ByteCount, NULL, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
    return within(dstDevice, srcDevice, ByteCount, hStream, true);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount) {
    struct drv_context *context;
    CUresult r = cu_context(dstContext, &context);
    if (!r)
        r = cu_context(srcContext, &context);
    return r ? r : within(dstDevice, srcDevice, ByteCount, NULL, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream) {
    struct drv_context *context;
    CUresult r = cu_context(dstContext, &context);
    if (!r)
        r = cu_context(srcContext, &context);
    return r ? r : within(dstDevice, srcDevice, ByteCount, hStream, true);
}

/* Where one end begins; 0: in an array, which there are none of. */
static uint64_t end_of(unsigned type, const void *host, CUdeviceptr device) {
    if (type == CU_SIM_HOST)
        return (uintptr_t)host;
    return type == CU_SIM_ARRAY ? 0 : device;
}

static CUresult solid(const CUDA_MEMCPY3D *p, CUstream handle, bool async) {
    struct drv_stream *stream;
    CUresult r = cu_stream(handle, &stream);
    if (r || !p)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (p->src_type == CU_SIM_ARRAY || p->dst_type == CU_SIM_ARRAY)
        return cu_result(DRV_NOT_SUPPORTED);
    struct drv_copy c = {.width = p->width, .rows = p->height, .planes = p->depth};
    c.from_pitch = p->src_pitch ? p->src_pitch : p->width;
    c.to_pitch = p->dst_pitch ? p->dst_pitch : p->width;
    c.from_slice = c.from_pitch * (p->src_height ? p->src_height : p->height);
    c.to_slice = c.to_pitch * (p->dst_height ? p->dst_height : p->height);
    if (c.from_pitch < p->src_x + p->width || c.to_pitch < p->dst_x + p->width)
        return CUDA_ERROR_INVALID_VALUE;
    c.from = end_of(p->src_type, p->src_host, p->src_device);
    c.from += p->src_z * c.from_slice + p->src_y * c.from_pitch + p->src_x;
    c.to = end_of(p->dst_type, p->dst_host, p->dst_device);
    c.to += p->dst_z * c.to_slice + p->dst_y * c.to_pitch + p->dst_x;
    return cu_result(drv_copy(stream, &c, async));
}

static CUresult flat(const CUDA_MEMCPY2D *p, CUstream handle, bool async) {
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D c = {
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
    return solid(&c, handle, async);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) { return flat(pCopy, NULL, false); }

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) { return flat(pCopy, NULL, false); }

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
    return flat(pCopy, hStream, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) { return solid(pCopy, NULL, false); }

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
    return solid(pCopy, hStream, true);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
    return solid(pCopy ? &pCopy->copy : NULL, NULL, false);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
    return solid(pCopy ? &pCopy->copy : NULL, hStream, true);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                               CUstream hStream) {
    (void)attrs;
    (void)attrsIdxs;
    (void)numAttrs;
    if (!dsts || !srcs || !sizes || !hStream)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; !r && i < count; i++)
        r = plain(dsts[i], srcs[i], sizes[i], hStream, true);
    return r;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                            size_t *failIdx, CUstream hStream) {
    CUresult r =
        cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
    if (r && failIdx)
        *failIdx = SIZE_MAX;
    return r;
}
