/* SPDX-License-Identifier: Apache-2.0
 *
 * From api.def: a function type and a number for each line, and the driver's own functions by that
 * number (loader.c). Nothing else in this folder calls the driver by any other way.
 */
#ifndef KREX_CUDA_API_H
#define KREX_CUDA_API_H

#include <stdbool.h>

#include "../atomic.h"
#include "../board.h"
#include "types.h"

#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    typedef ret(*krex_fn_##symbol) params;
#include "api.def"
#undef KREX_CU_API

enum {
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    KREX_LINE_##symbol,
#include "api.def"
#undef KREX_CU_API
    KREX_CU_LINES,
};

/* What a line says of its function, without pointers: nothing has to be relocated at load. */
struct krex_cu_line {
    char symbol[56];
    uint16_t version;
    uint8_t base_length; /* the symbol begins with its base */
    uint8_t per_thread;  /* given out to who asks for a per-thread default stream */
};
extern const struct krex_cu_line krex_cu_lines[KREX_CU_LINES];
/* The line of a symbol; -1: it is in none. */
int krex_cu_line_of(const char *symbol);
/* The lines of a symbol's base, which stand together: the first, and how many; 0: no such base. */
int krex_cu_lines_of(const char *name, int *first);

/* By line: the hook, or NULL (hooks.c). */
extern void *const krex_cu_hooks[KREX_CU_LINES];

/* By line: the driver's function. NULL: it has none, or nobody has looked yet. */
extern void *krex_cu_route[KREX_CU_LINES];
void *krex_cu_find_slow(int line);
/* The number of a simulated device; negative: it is another. */
int krex_cu_simulated(CUdevice device);

/* Never NULL: what the driver lacks says so when it is called. */
static inline void *krex_cu_find(int line) {
    void *route = krex_load_relaxed(&krex_cu_route[line]);
    return __builtin_expect(route != NULL, 1) ? route : krex_cu_find_slow(line);
}

#define KREX_CU_REAL(symbol) ((krex_fn_##symbol)krex_cu_find(KREX_LINE_##symbol))

/* loader.c; krex_cu_find_any is in drain.h. */
bool krex_cu_owns(const char *path);

/* proc.c */
bool krex_cu_cares(const char *name);
void *krex_cu_hand_out(const char *name, void *real);

/* device.c */

/* Registers this process for the device before it has a context there, or reports a second device.
 * False: it has no key, so nobody can be told. */
bool krex_cu_context_on(CUdevice device, char key[KREX_DEVICE_KEY_SIZE]);
/* Learns the calling thread's context, which may have been made past our hooks; once a thread. */
void krex_cu_see_current(void);

/* stand_in.c */
void krex_cu_stand_in(bool hooked, uint64_t times);

#endif
