/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about an address. Of one that no call has given out, or registered, nothing is.
 */
#include <string.h>

#include "structs.h"

enum attribute {
    CONTEXT = 1,
    MEMORY_TYPE,
    DEVICE_POINTER,
    HOST_POINTER,
    BUFFER_ID = 7,
    IS_MANAGED,
    DEVICE_ORDINAL,
    RANGE_START = 11,
    RANGE_SIZE,
    MAPPED,
    ACCESS_FLAGS = 16,
    POOL,
};

/* As ROCm 6 counts. */
enum { HOST = 1, DEVICE = 2, MANAGED = 3, READ_WRITE = 3 };

static unsigned type_of(const struct drv_memory *m) {
    return m->kind == DRV_MANAGED ? MANAGED : m->kind == DRV_DEVICE_MEMORY ? DEVICE : HOST;
}

static uint64_t value_of(const struct drv_memory *m, enum attribute attribute, uint64_t address) {
    switch (attribute) {
    case CONTEXT:
        return (uintptr_t)m->context->device;
    case MEMORY_TYPE:
        return type_of(m);
    case DEVICE_POINTER:
    case HOST_POINTER:
        return address;
    case BUFFER_ID:
        return m->id;
    case IS_MANAGED:
        return m->kind == DRV_MANAGED;
    case DEVICE_ORDINAL:
        return (uint64_t)hip_ordinal(m->context->device);
    case RANGE_START:
        return m->address;
    case RANGE_SIZE:
        return m->bytes;
    case MAPPED:
        return 1;
    case ACCESS_FLAGS:
        return READ_WRITE;
    default:
        return (uintptr_t)m->pool;
    }
}

/* How many bytes the caller has room for; 0: there is no such attribute here. */
static size_t size_of(hipPointer_attribute attribute) {
    static const unsigned char sizes[POOL + 1] = {
        [CONTEXT] = 8,    [MEMORY_TYPE] = 4, [DEVICE_POINTER] = 8, [HOST_POINTER] = 8,
        [BUFFER_ID] = 8,  [IS_MANAGED] = 1,  [DEVICE_ORDINAL] = 4, [RANGE_START] = 8,
        [RANGE_SIZE] = 8, [MAPPED] = 1,      [ACCESS_FLAGS] = 4,   [POOL] = 8,
    };
    return attribute <= POOL ? sizes[attribute] : 0;
}

hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr) {
    hipError_t r = hip_ready();
    struct drv_memory memory;
    size_t size = size_of(attribute);
    if (r || !data || !size || !drv_memory_find((uintptr_t)ptr, &memory))
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (attribute == HOST_POINTER && memory.kind == DRV_DEVICE_MEMORY)
        return hip_error(HIP_INVALID_VALUE);
    uint64_t value = value_of(&memory, (enum attribute)attribute, (uintptr_t)ptr);
    memcpy(data, &value, size); /* little-endian */
    return r;
}

/* Unlike the call for one: what is not known is 0, and no error. */
hipError_t hipDrvPointerGetAttributes(unsigned int numAttributes, hipPointer_attribute *attributes,
                                      void **data, hipDeviceptr_t ptr) {
    hipError_t r = hip_ready();
    struct drv_memory memory;
    if (r || !numAttributes || !attributes || !data)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    bool known = drv_memory_find((uintptr_t)ptr, &memory);
    for (unsigned i = 0; i < numAttributes; i++) {
        size_t size = size_of(attributes[i]);
        if (!size || !data[i])
            return hip_error(HIP_INVALID_VALUE);
        uint64_t value =
            known ? value_of(&memory, (enum attribute)attributes[i], (uintptr_t)ptr) : 0;
        memcpy(data[i], &value, size);
    }
    return r;
}

/* Of memory that nobody has told of: its type is 0, "unregistered", and no error. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr) {
    hipError_t r = hip_ready();
    struct drv_memory memory;
    if (r || !attributes || !ptr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *attributes = (hipPointerAttribute_t){.device = -2, .host_pointer = (void *)ptr};
    if (!drv_memory_find((uintptr_t)ptr, &memory))
        return r;
    attributes->type = type_of(&memory);
    attributes->device = hip_ordinal(memory.context->device);
    attributes->device_pointer = (void *)ptr;
    attributes->host_pointer = memory.kind == DRV_DEVICE_MEMORY ? NULL : (void *)ptr;
    attributes->managed = memory.kind == DRV_MANAGED;
    attributes->flags = memory.flags;
    return r;
}
