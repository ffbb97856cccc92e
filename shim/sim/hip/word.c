/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on words in memory, in a stream's order.
 */
#include "structs.h"

enum operation { WAIT_32 = 1, WRITE_32, FLUSH, WAIT_64, WRITE_64, BARRIER };
enum { COMPARE = 3 }; /* of the flags */

static hipError_t operate(hipStream_t stream, enum operation operation, struct drv_wait wait) {
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (r || operation == FLUSH || operation == BARRIER)
        return r;
    bool wide = operation == WAIT_64 || operation == WRITE_64;
    bool waits = operation == WAIT_32 || operation == WAIT_64;
    if (operation < WAIT_32 || operation > BARRIER)
        return hip_error(HIP_NOT_SUPPORTED);
    wait.bytes = wide ? sizeof(uint64_t) : sizeof(uint32_t);
    if (wait.address % wait.bytes || !drv_memory_at(wait.address, wait.bytes))
        return hip_error(HIP_INVALID_VALUE);
    struct drv_work work = waits ? drv_wait_work(&wait) : drv_write_work(&wait);
    return hip_result(drv_submit(s, &work, NULL, 0, NULL));
}

static struct drv_wait until(const void *ptr, uint64_t value, unsigned flags, uint64_t mask) {
    return (struct drv_wait){(uintptr_t)ptr, value, mask, flags & COMPARE, 0};
}

hipError_t hipStreamWaitValue32(hipStream_t stream, void *ptr, uint32_t value, unsigned int flags,
                                uint32_t mask) {
    return operate(stream, WAIT_32, until(ptr, value, flags, mask));
}

hipError_t hipStreamWaitValue64(hipStream_t stream, void *ptr, uint64_t value, unsigned int flags,
                                uint64_t mask) {
    return operate(stream, WAIT_64, until(ptr, value, flags, mask));
}

hipError_t hipStreamWriteValue32(hipStream_t stream, void *ptr, uint32_t value,
                                 unsigned int flags) {
    return operate(stream, WRITE_32, until(ptr, value, flags, 0));
}

hipError_t hipStreamWriteValue64(hipStream_t stream, void *ptr, uint64_t value,
                                 unsigned int flags) {
    return operate(stream, WRITE_64, until(ptr, value, flags, 0));
}

hipError_t hipStreamBatchMemOp(hipStream_t stream, unsigned int count,
                               hipStreamBatchMemOpParams *paramArray, unsigned int flags) {
    hipError_t r = paramArray && !flags ? hipSuccess : hip_error(HIP_INVALID_VALUE);
    for (unsigned i = 0; !r && i < count; i++) {
        const hipStreamBatchMemOpParams *p = &paramArray[i];
        bool wide = p->operation == WAIT_64 || p->operation == WRITE_64;
        uint64_t value = wide ? p->value64 : p->value;
        r = operate(stream, p->operation, until(p->address, value, p->flags, UINT64_MAX));
    }
    return r;
}
