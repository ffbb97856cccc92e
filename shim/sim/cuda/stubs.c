/* SPDX-License-Identifier: Apache-2.0
 *
 * Every name of api.def, weakly: one that another file here defines is taken instead. The _ptsz and
 * _ptds forms are defined nowhere else. Each calls its twin, the form without that ending, which takes
 * stream 0 for the thread's own meanwhile.
 */
#include <stdbool.h>

#include "atomic.h"
#include "cuda/types.h"
#include "proc.h"

_Thread_local bool cu_per_thread;

/* All that is not supported; it looks at no argument, so that its own type does not matter. */
__attribute__((used)) static CUresult not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#pragma GCC diagnostic ignored "-Wattribute-alias"
#define EXPORTED visibility("default")

#define DEFINE_LEGACY(symbol, params, args)                                                        \
    CUresult symbol params __attribute__((weak, alias("not_supported"), EXPORTED));

#define DEFINE_PER_THREAD(symbol, params, args)                                                    \
    __attribute__((EXPORTED)) CUresult symbol params {                                             \
        static void *found;                                                                        \
        void *twin = krex_load_relaxed(&found);                                                    \
        if (!twin)                                                                                 \
            krex_store_relaxed(&found, twin = cu_twin(#symbol));                                   \
        bool before = cu_per_thread;                                                               \
        cu_per_thread = true;                                                                      \
        CUresult r = ((CUresult(*) params)twin)args;                                               \
        cu_per_thread = before;                                                                    \
        return r;                                                                                  \
    }
#define DEFINE_PTSZ DEFINE_PER_THREAD
#define DEFINE_PTDS DEFINE_PER_THREAD

#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    DEFINE_##flag(symbol, params, args)
#include "cuda/api.def"
