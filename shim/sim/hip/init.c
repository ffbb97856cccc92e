/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { VERSION = 70100000 }; /* 7.1.0 */

hipError_t hipInit(unsigned int flags) {
    return flags ? hip_error(HIP_INVALID_VALUE) : hip_ready();
}

hipError_t hipDriverGetVersion(int *driverVersion) {
    if (!driverVersion)
        return hip_error(HIP_INVALID_VALUE);
    *driverVersion = VERSION;
    return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *runtimeVersion) { return hipDriverGetVersion(runtimeVersion); }

hipError_t hipProfilerStart(void) { return hip_ready(); }

hipError_t hipProfilerStop(void) { return hip_ready(); }
