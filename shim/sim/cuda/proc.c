/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress, from the table that api.def is. What is not supported is given out all the same: the
 * name exists, and its call says the rest.
 */
#include "proc.h"

#include <string.h>

#include "face.h"

enum flag { LEGACY, PTSZ, PTDS };

static const struct row {
    const char *symbol, *base;
    int version;
    enum flag flag;
    void *function;
} rows[] = {
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    {#symbol, #base, version, flag, (void *)(symbol)},
#include "cuda/api.def"
#undef KREX_CU_API
};

enum { ROWS = sizeof rows / sizeof *rows };

void *cu_twin(const char *symbol) {
    size_t length = strlen(symbol) - strlen("_ptsz");
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].symbol) == length && !memcmp(rows[i].symbol, symbol, length))
            return rows[i].function;
    return NULL;
}

/* The row of that name with the highest version that the caller knows. */
static const struct row *find(const char *name, int version, bool per_thread, bool *known) {
    const struct row *best = NULL;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (strcmp(r->base, name) != 0)
            continue;
        *known = true;
        if (per_thread == (r->flag != LEGACY) && r->version <= version &&
            (!best || r->version > best->version))
            best = r;
    }
    return best;
}

static CUresult look_up(const char *name, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    bool known = false;
    const struct row *row = NULL;
    if (!name || !function || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        row = find(name, version, true, &known);
    if (!row)
        row = find(name, version, false, &known);
    *function = row ? row->function : NULL;
    if (status)
        *status = row     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return row ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    return look_up(symbol, pfn, cudaVersion, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus) {
    return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}
