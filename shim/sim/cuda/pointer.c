/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about an address. Of one that no driver call has given out, or registered, nothing is.
 */
#include <string.h>

#include "face.h"
#include "structs.h"

enum attribute {
    CONTEXT = 1,
    MEMORY_TYPE,
    DEVICE_POINTER,
    HOST_POINTER,
    SYNC_MEMOPS = 6,
    BUFFER_ID,
    IS_MANAGED,
    DEVICE_ORDINAL,
    IPC_CAPABLE,
    RANGE_START,
    RANGE_SIZE,
    MAPPED,
    HANDLE_TYPES,
    RDMA_CAPABLE,
    ACCESS_FLAGS,
    POOL,
    MAPPING_SIZE,
    MAPPING_BASE,
    BLOCK_ID,
};

enum { READ_WRITE = 3, POINTER = sizeof(void *), WORD = sizeof(int) };

static uint64_t value_of(const struct drv_memory *m, enum attribute attribute, uint64_t address) {
    bool host = m->kind != DRV_DEVICE_MEMORY;
    switch (attribute) {
    case CONTEXT:
        return (uintptr_t)m->context;
    case MEMORY_TYPE:
        return host && m->kind != DRV_MANAGED ? CU_SIM_HOST : CU_SIM_DEVICE;
    case DEVICE_POINTER:
        return address;
    case HOST_POINTER:
        return host ? address : 0;
    case BUFFER_ID:
    case BLOCK_ID:
        return m->id;
    case IS_MANAGED:
        return m->kind == DRV_MANAGED;
    case DEVICE_ORDINAL:
        return (uint64_t)cu_ordinal(m->context->device);
    case RANGE_START:
    case MAPPING_BASE:
        return m->address;
    case RANGE_SIZE:
    case MAPPING_SIZE:
        return m->bytes;
    case MAPPED:
        return 1;
    case ACCESS_FLAGS:
        return READ_WRITE;
    case POOL:
        return (uintptr_t)m->pool;
    default:
        return 0;
    }
}

/* How many bytes the caller has room for; 0: there is no such attribute. */
static size_t size_of(CUpointer_attribute attribute) {
    switch (attribute) {
    case CONTEXT:
    case DEVICE_POINTER:
    case HOST_POINTER:
    case BUFFER_ID:
    case RANGE_START:
    case RANGE_SIZE:
    case HANDLE_TYPES:
    case POOL:
    case MAPPING_SIZE:
    case MAPPING_BASE:
    case BLOCK_ID:
        return POINTER;
    case MEMORY_TYPE:
    case DEVICE_ORDINAL:
    case ACCESS_FLAGS:
        return WORD;
    case SYNC_MEMOPS:
    case IS_MANAGED:
    case IPC_CAPABLE:
    case MAPPED:
    case RDMA_CAPABLE:
        return 1;
    default:
        return 0;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    enum drv_result ready = drv_ready();
    size_t size = size_of(attribute);
    struct drv_memory memory;
    if (ready || !data || !size)
        return ready ? cu_result(ready) : CUDA_ERROR_INVALID_VALUE;
    if (!drv_memory_find(ptr, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == HOST_POINTER && memory.kind == DRV_DEVICE_MEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t value = value_of(&memory, (enum attribute)attribute, ptr);
    memcpy(data, &value, size); /* little-endian */
    return CUDA_SUCCESS;
}

/* Unlike the call for one: what is not known is 0, and no error. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                void **data, CUdeviceptr ptr) {
    enum drv_result ready = drv_ready();
    if (ready || !numAttributes || !attributes || !data)
        return ready ? cu_result(ready) : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; i++) {
        if (!size_of(attributes[i]) || !data[i])
            return CUDA_ERROR_INVALID_VALUE;
        memset(data[i], 0, size_of(attributes[i]));
        if (attributes[i] == DEVICE_ORDINAL)
            *(int *)data[i] = -2; /* as the header has it for no device */
        cuPointerGetAttribute(data[i], attributes[i], ptr);
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    struct drv_memory memory;
    enum drv_result ready = drv_ready();
    if (ready || !value || attribute != SYNC_MEMOPS || !drv_memory_find(ptr, &memory))
        return ready ? cu_result(ready) : CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
