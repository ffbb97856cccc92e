/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on words in memory, in a stream's order.
 */
#include "face.h"
#include "structs.h"

enum { COMPARE = 3 }; /* of the flags; the rest are hints */

static CUresult operate(CUstream handle, const CUstreamBatchMemOpParams *p) {
    struct drv_stream *stream;
    CUresult r = cu_stream(handle, &stream);
    if (r)
        return r;
    bool wide = p->operation == CU_SIM_WAIT_64 || p->operation == CU_SIM_WRITE_64;
    bool waits = p->operation == CU_SIM_WAIT_32 || p->operation == CU_SIM_WAIT_64;
    if (p->operation == CU_SIM_FLUSH || p->operation == CU_SIM_BARRIER)
        return CUDA_SUCCESS;
    if (!p->operation || p->operation > CU_SIM_BARRIER)
        return cu_result(DRV_NOT_SUPPORTED);
    struct drv_wait wait = {.address = p->address, .mask = UINT64_MAX};
    wait.compare = p->flags & COMPARE;
    wait.value = wide ? p->value64 : p->value;
    wait.bytes = wide ? sizeof(uint64_t) : sizeof(uint32_t);
    if (wait.address % wait.bytes || !drv_memory_at(wait.address, wait.bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct drv_work work = waits ? drv_wait_work(&wait) : drv_write_work(&wait);
    return cu_result(drv_submit(stream, &work, NULL, 0, NULL));
}

static CUresult one(CUstream stream, unsigned operation, CUdeviceptr address, uint64_t value,
                    unsigned flags) {
    CUstreamBatchMemOpParams p = {.operation = operation, .address = address, .flags = flags};
    p.value64 = value;
    return operate(stream, &p);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
    return one(stream, CU_SIM_WAIT_32, addr, value, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                             unsigned int flags) {
    return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
    return one(stream, CU_SIM_WAIT_64, addr, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                             unsigned int flags) {
    return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
    return one(stream, CU_SIM_WRITE_32, addr, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                              unsigned int flags) {
    return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags) {
    return one(stream, CU_SIM_WRITE_64, addr, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                              unsigned int flags) {
    return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams *paramArray, unsigned int flags) {
    CUresult r = !paramArray || flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (unsigned i = 0; !r && i < count; i++)
        r = operate(stream, &paramArray[i]);
    return r;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
                            CUstreamBatchMemOpParams *paramArray, unsigned int flags) {
    return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
