/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of the CUDA driver's functions (shim/cuda/api.def) as the hooks will expand it: every line
 * makes a function that compiles without CUDA's headers, and the versions tell the ABIs apart.
 */
#include "check.h"

#include "cuda/types.h"

enum kind {
    SUBMIT,
    SUBMIT_SYNC,
    SUBMIT_HOST,
    SUBMIT_WAIT,
    SUBMIT_EVENT,
    SUBMIT_RECORD,
    SUBMIT_JOIN,
    SUBMIT_ALLOC,
    HEAVY_CALL,
    HEAVY_LOAD,
    HEAVY_STREAM,
    HEAVY_ALLOC,
    CONTEXT,
    CONTEXT_END,
    CAPTURE,
    CAPTURE_END,
    RESOLVE,
    TRACK_MADE,
    TRACK_GONE,
    TRACK_READ,
    TRACK_WAIT,
    NEVER,
    PASS,
};
enum flag { LEGACY, PTDS, PTSZ };

struct line {
    enum kind kind;
    const char *symbol;
    const char *base;
    int version;
    enum flag flag;
};

/* check.h has a HEAVY of its own. */
#define HEAVY HEAVY_CALL

/* A hook for each line: it says what the stream is, and calls a driver that isn't there. */
static CUstream seen_stream;
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    _Static_assert((kind) >= SUBMIT && (flag) >= LEGACY && (version) >= 2000, #symbol);            \
    static ret(*real_##symbol) params;                                                             \
    __attribute__((unused)) static ret hook_##symbol params {                                      \
        seen_stream = stream;                                                                      \
        return real_##symbol ? real_##symbol args : CUDA_ERROR_NOT_SUPPORTED;                      \
    }
#include "cuda/api.def"
#undef KREX_CU_API

static const struct line lines[] = {
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    {kind, #symbol, #base, version, flag},
#include "cuda/api.def"
#undef KREX_CU_API
};
enum { COUNT = sizeof lines / sizeof *lines };

/* As cuGetProcAddress finds a function, if its documentation is right. */
static const char *find(const char *base, int version, enum flag flag) {
    const struct line *best = NULL;
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(lines[i].base, base) && lines[i].flag == flag && lines[i].version <= version)
            if (!best || lines[i].version > best->version)
                best = &lines[i];
    return best ? best->symbol : "";
}

static int finds(const char *base, int version, enum flag flag, const char *symbol) {
    return !strcmp(find(base, version, flag), symbol);
}

static void abis_are_told_apart(void) {
    /* GIVEN a name that had another ABI before WHEN asked for by version THEN each gets its own */
    CHECK(finds("cuGetProcAddress", 11030, LEGACY, "cuGetProcAddress"));
    CHECK(finds("cuGetProcAddress", 12000, LEGACY, "cuGetProcAddress_v2"));
    CHECK(finds("cuMemcpyBatchAsync", 12080, LEGACY, "cuMemcpyBatchAsync"));
    CHECK(finds("cuMemcpyBatchAsync", 12090, PTSZ, "cuMemcpyBatchAsync_ptsz"));
    CHECK(finds("cuMemcpyBatchAsync", 13000, PTSZ, "cuMemcpyBatchAsync_v2_ptsz"));
    CHECK(finds("cuMemPrefetchAsync", 8000, LEGACY, "cuMemPrefetchAsync"));
    CHECK(finds("cuMemPrefetchAsync", 13000, LEGACY, "cuMemPrefetchAsync_v2"));
    CHECK(finds("cuMemAlloc", 2000, LEGACY, "cuMemAlloc"));
    CHECK(finds("cuMemAlloc", 13000, LEGACY, "cuMemAlloc_v2"));
    CHECK(finds("cuMemcpyDtoH", 7000, PTDS, "cuMemcpyDtoH_v2_ptds"));
    CHECK(finds("cuLaunchKernel", 3020, LEGACY, ""));
}

static void lines_are_distinct(void) {
    for (int i = 0; i < COUNT; i++) {
        for (int k = i + 1; k < COUNT; k++) {
            CHECK(strcmp(lines[i].symbol, lines[k].symbol) != 0);
            CHECK(strcmp(lines[i].base, lines[k].base) != 0 || lines[i].flag != lines[k].flag ||
                  lines[i].version != lines[k].version);
        }
    }
}

static void streams_are_found(void) {
    /* GIVEN calls that say their stream in different ways WHEN made THEN the list has told it */
    CUstream stream = (CUstream)(uintptr_t)0x1000;
    CUlaunchConfig config = {.gridDimX = 1, .hStream = stream};
    CHECK(hook_cuLaunchKernelEx(&config, NULL, NULL, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(seen_stream == stream);
    hook_cuLaunchKernelEx_ptsz(NULL, NULL, NULL, NULL);
    CHECK(seen_stream == KREX_CU_NO_STREAM);
    hook_cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    CHECK(seen_stream == stream);
    hook_cuMemcpyHtoD_v2(0, NULL, 0);
    CHECK(seen_stream == CU_STREAM_LEGACY);
    hook_cuMemcpyHtoD_v2_ptds(0, NULL, 0);
    CHECK(seen_stream == CU_STREAM_PER_THREAD);
    hook_cuInit(0);
    CHECK(seen_stream == KREX_CU_NO_STREAM);
}

int main(void) {
    CHECK(COUNT > 700);
    abis_are_told_apart();
    lines_are_distinct();
    streams_are_found();
    return 0;
}
