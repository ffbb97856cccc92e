/* SPDX-License-Identifier: Apache-2.0
 *
 * Every name of api.def, weakly: one that another file here defines is taken instead. The _spt forms are
 * defined nowhere else. Each calls its twin, the form without that ending, which takes stream 0 for the
 * thread's own meanwhile.
 */
#include <stdbool.h>

#include "atomic.h"
#include "face.h"
#include "proc.h"

_Thread_local bool hip_per_thread;

/* All that is not supported; it looks at no argument, so that its own type does not matter. What gives
 * text, or a structure, is defined elsewhere. */
__attribute__((used)) static hipError_t not_supported(void) { return hip_error(HIP_NOT_SUPPORTED); }

#pragma GCC diagnostic ignored "-Wattribute-alias"
#define EXPORTED visibility("default")

#define DEFINE_LEGACY(ret, symbol, params, args)                                                   \
    ret symbol params __attribute__((weak, alias("not_supported"), EXPORTED));

#define DEFINE_SPT(ret, symbol, params, args)                                                      \
    __attribute__((EXPORTED)) ret symbol params {                                                  \
        static void *found;                                                                        \
        void *twin = krex_load_relaxed(&found);                                                    \
        if (!twin)                                                                                 \
            krex_store_relaxed(&found, twin = hip_twin(#symbol));                                  \
        bool before = hip_per_thread;                                                              \
        hip_per_thread = true;                                                                     \
        ret r = ((ret(*) params)twin)args;                                                         \
        hip_per_thread = before;                                                                   \
        return r;                                                                                  \
    }

#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args)                                \
    DEFINE_##flag(ret, symbol, params, args)
#include "hip/api.def"
