/* SPDX-License-Identifier: Apache-2.0
 *
 * From api.def: a function type and a number for each line, and the runtime's own functions by that
 * number (loader.c). Nothing else in this folder calls the runtime by any other way.
 */
#ifndef KREX_HIP_API_H
#define KREX_HIP_API_H

#include <stdbool.h>

#include "../atomic.h"
#include "../board.h"
#include "types.h"

#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args)                                \
    typedef ret(*krex_fn_##symbol) params;
#include "api.def"
#undef KREX_HIP_API

enum {
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) KREX_LINE_##symbol,
#include "api.def"
#undef KREX_HIP_API
    KREX_HIP_LINES,
};

/* The symbol of a line, and the line of a symbol; -1: it is in none. */
const char *krex_hip_symbol(int line);
int krex_hip_line_of(const char *symbol);

/* By line: the hook, or NULL (hooks.c). */
extern void *const krex_hip_hooks[KREX_HIP_LINES];

/* By line: the runtime's function. NULL: it has none, or nobody has looked yet. */
extern void *krex_hip_route[KREX_HIP_LINES];
void *krex_hip_find_slow(int line);
/* The number of a simulated device; negative: it is another. */
int krex_hip_simulated(int device);

/* Never NULL: what the runtime lacks says so when it is called. */
static inline void *krex_hip_find(int line) {
    void *route = krex_load_relaxed(&krex_hip_route[line]);
    return __builtin_expect(route != NULL, 1) ? route : krex_hip_find_slow(line);
}

#define KREX_HIP_REAL(symbol) ((krex_fn_##symbol)krex_hip_find(KREX_LINE_##symbol))

/* Around a call of ours that may fail: it is not for hipGetLastError to tell the program of. */
static inline hipError_t krex_hip_before(void) { return KREX_HIP_REAL(hipPeekAtLastError)(); }
static inline hipError_t krex_hip_quietly(hipError_t before, hipError_t result) {
    if (result != hipSuccess && before == hipSuccess)
        KREX_HIP_REAL(hipGetLastError)();
    return result;
}

/* loader.c */
bool krex_hip_owns(const char *path);
/* The runtime's own function of that symbol; NULL: it has none. */
void *krex_hip_find_any(const char *symbol);

/* proc.c */
bool krex_hip_cares(const char *name);
void *krex_hip_hand_out(const char *name, void *real);

/* stand_in.c */
void krex_hip_stand_in(bool hooked, uint64_t times);

#endif
