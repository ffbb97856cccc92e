/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

enum { VERSION = 13000 };

CUresult cuInit(unsigned int Flags) {
    return Flags ? CUDA_ERROR_INVALID_VALUE : cu_result(drv_init());
}

CUresult cuDriverGetVersion(int *driverVersion) {
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = VERSION;
    return CUDA_SUCCESS;
}

/* The tables behind it are private to the vendor's own libraries: there are none. An error at once, and
 * nothing written, is what those libraries take for that. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    (void)ppExportTable;
    (void)pExportTableId;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart(void) {
    struct drv_context *context;
    return cu_enter(&context);
}

CUresult cuProfilerStop(void) {
    struct drv_context *context;
    return cu_enter(&context);
}
