/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL driver without devices that offers extensions which PoCL lacks: one that puts work on the
 * device past every hook, and one that only asks.
 */
#include <string.h>

#include "opencl/api.h"

#define CL_PLATFORM_ICD_SUFFIX_KHR 0x0920
#define EXPORT __attribute__((visibility("default")))

static void *dispatch[KREX_CL_DISPATCH_SIZE];
static struct krex_cl_object platform = {dispatch};

static cl_int offered(void) { return CL_SUCCESS; }

static cl_int say(const char *text, size_t size, void *to, size_t *used) {
    if (used)
        *used = strlen(text) + 1;
    if (to && size > strlen(text))
        memcpy(to, text, strlen(text) + 1);
    return CL_SUCCESS;
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t size, void *to,
                                size_t *used) {
    (void)id;
    if (what == CL_PLATFORM_VERSION)
        return say("OpenCL 3.0 stub", size, to, used);
    if (what == CL_PLATFORM_EXTENSIONS)
        return say("cl_khr_icd", size, to, used);
    if (what == CL_PLATFORM_ICD_SUFFIX_KHR)
        return say("INTEL", size, to,
                   used); /* a loader asks the driver whose suffix the name has */
    return say("stub", size, to, used);
}

static cl_int no_device(cl_platform_id id, cl_device_type type, cl_uint room, cl_device_id *to,
                        cl_uint *found) {
    (void)id, (void)type, (void)room, (void)to;
    if (found)
        *found = 0;
    return CL_DEVICE_NOT_FOUND;
}

EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *to, cl_uint *found) {
    if (found)
        *found = 1;
    if (to && room)
        *to = (cl_platform_id)&platform;
    return CL_SUCCESS;
}

/* Never through the exported name, which may be somebody else's in this process. */
static void *find(const char *name) {
    if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
        return (void *)clIcdGetPlatformIDsKHR;
    if (!strcmp(name, "clEnqueueMemFillINTEL") || !strcmp(name, "clEnqueueOfTheFuture") ||
        !strcmp(name, "clGetMemAllocInfoINTEL"))
        return (void *)offered;
    return NULL;
}

static void *find_for_platform(cl_platform_id id, const char *name) {
    (void)id;
    return find(name);
}

EXPORT void *clGetExtensionFunctionAddress(const char *name) { return find(name); }

__attribute__((constructor)) static void fill(void) {
    dispatch[KREX_INDEX_clGetPlatformInfo] = (void *)clGetPlatformInfo;
    dispatch[KREX_INDEX_clGetDeviceIDs] = (void *)no_device;
    dispatch[KREX_INDEX_clGetExtensionFunctionAddressForPlatform] = (void *)find_for_platform;
}
