/* SPDX-License-Identifier: Apache-2.0
 *
 * hipGetProcAddress, from the table that api.def is. What is not supported is given out all the same: the
 * name exists, and its call says the rest.
 */
#include "proc.h"

#include <stdio.h>
#include <string.h>

#include "face.h"

enum { PER_THREAD = 2, FOUND = 0, NOT_FOUND = 1, NAME = 128, ROCM_6 = 600 };

static const struct row {
    const char *symbol;
    void *function;
} rows[] = {
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) {#symbol, (void *)(symbol)},
#include "hip/api.def"
#undef KREX_HIP_API
};

enum { ROWS = sizeof rows / sizeof *rows };

static void *find(const char *symbol, size_t length) {
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].symbol) == length && !memcmp(rows[i].symbol, symbol, length))
            return rows[i].function;
    return NULL;
}

void *hip_twin(const char *symbol) { return find(symbol, strlen(symbol) - strlen("_spt")); }

/* With one of the endings that the caller's flags and headers give a name. */
static void *find_as(const char *symbol, const char *ending) {
    char name[NAME];
    int length = snprintf(name, sizeof name, "%s%s", symbol, ending);
    return length < NAME ? find(name, (size_t)length) : NULL;
}

static void *look_up(const char *symbol, int version, bool per_thread) {
    void *function = NULL;
    if (per_thread)
        function = find_as(symbol, "_spt");
    if (!function && version >= ROCM_6)
        function = find_as(symbol, "R0600");
    return function ? function : find_as(symbol, "");
}

/* A thread's own streams are asked for by the flag, or by the form of the call. */
static hipError_t give(const char *symbol, void **function, int version, uint64_t flags,
                       unsigned int *status) {
    if (!symbol || !function || flags > PER_THREAD)
        return hip_error(HIP_INVALID_VALUE);
    *function = look_up(symbol, version, flags == PER_THREAD || hip_per_thread);
    if (status)
        *status = *function ? FOUND : NOT_FOUND;
    return *function ? hipSuccess : hip_error(HIP_NOT_FOUND);
}

hipError_t hipGetProcAddress(const char *symbol, void **pfn, int hipVersion, uint64_t flags,
                             hipDriverProcAddressQueryResult *symbolStatus) {
    return give(symbol, pfn, hipVersion, flags, symbolStatus);
}

/* Of the runtime that programs of ROCm 6 and later have. */
hipError_t hipGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                  hipDriverEntryPointQueryResult *status) {
    return give(symbol, funcPtr, ROCM_6, flags, status);
}
