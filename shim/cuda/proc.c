/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers for whoever looks a function up, by dlsym or by cuGetProcAddress: the driver's answer, with
 * a hook in place of the function. A name does not say which of a function's ABIs is meant, but its
 * address does; where the driver gives out an address that it does not export, the same question for a
 * version that is listed gives the same address if it is the same ABI.
 */
#include <string.h>

#include "../gpu/unlisted.h"
#include "api.h"

#define HOOK __attribute__((visibility("default")))

/* All forms of a function are of one kind, so all are hooked, or none. */
bool krex_cu_cares(const char *name) {
    int first;
    if (name[0] != 'c' || name[1] != 'u' || name[2] < 'A' || name[2] > 'Z')
        return false;
    return krex_cu_lines_of(name, &first) ? krex_cu_hooks[first] != NULL
                                          : krex_sounds_like_submission(name);
}

/* --- by symbol --- */

void *krex_cu_hand_out(const char *name, void *real) {
    int line = krex_cu_line_of(name);
    if (!real)
        return NULL;
    /* Our hook calls the one driver that we found: not for functions of another. */
    if (line >= 0 && krex_load_relaxed(&krex_cu_route[line]) == real)
        return krex_cu_hooks[line] ? krex_cu_hooks[line] : real;
    krex_note_unlisted(name);
    return real;
}

/* --- by base, version and flags --- */

struct question {
    const char *name;
    int version;
    cuuint64_t flags;
};

static bool wants_per_thread(const struct question *q) {
    return q->flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

static int by_address(const struct question *q, int first, int n, const void *real) {
    int found = -1;
    for (int i = first; i < first + n; i++) {
        bool fits = krex_cu_lines[i].per_thread == wants_per_thread(q) &&
                    krex_cu_lines[i].version <= q->version;
        if (krex_load_relaxed(&krex_cu_route[i]) == real && (found < 0 || fits))
            found = i;
    }
    return found;
}

static void *ask(const char *name, int version, cuuint64_t flags) {
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result =
        krex_load_relaxed(&krex_cu_route[KREX_LINE_cuGetProcAddress_v2])
            ? KREX_CU_REAL(cuGetProcAddress_v2)(name, &function, version, flags, &status)
            : KREX_CU_REAL(cuGetProcAddress)(name, &function, version, flags);
    return result == CUDA_SUCCESS ? function : NULL;
}

/* A per-thread form, if there are any, is what a per-thread flag gives. */
static bool has_per_thread(int first, int n) {
    for (int i = first; i < first + n; i++)
        if (krex_cu_lines[i].per_thread)
            return true;
    return false;
}

static int by_version(const struct question *q, int first, int n, const void *real) {
    bool per_thread = wants_per_thread(q) && has_per_thread(first, n);
    for (int i = first + n - 1; i >= first; i--)
        if (krex_cu_lines[i].per_thread == per_thread && krex_cu_lines[i].version <= q->version &&
            ask(q->name, krex_cu_lines[i].version, q->flags) == real)
            return i;
    return -1;
}

static void *answer(const struct question *q, void *real) {
    int first, n = krex_cu_lines_of(q->name, &first);
    if (n && !krex_cu_hooks[first])
        return real;
    if (!n && !krex_sounds_like_submission(q->name))
        return real;
    int line = by_address(q, first, n, real);
    if (line < 0)
        line = by_version(q, first, n, real);
    if (line >= 0)
        return krex_cu_hooks[line];
    krex_note_unlisted(q->name);
    return real;
}

/* The driver's answer first; nothing of it is touched but the address, and that only if there is one. */
static CUresult replace(const struct question *q, void **function, CUresult result) {
    if (result == CUDA_SUCCESS && q->name && function && *function)
        *function = answer(q, *function);
    return result;
}

/* The five-argument form is one of an own name: a runtime may ask either resolver for either. */
HOOK CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    const struct question q = {symbol, cudaVersion, flags};
    return replace(&q, pfn, KREX_CU_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags));
}

HOOK CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus);
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus) {
    const struct question q = {symbol, cudaVersion, flags};
    return replace(
        &q, pfn, KREX_CU_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus));
}
