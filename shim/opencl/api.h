/* SPDX-License-Identifier: Apache-2.0
 *
 * From api.def: a function type and a dispatch index for each entry, and how the real function is
 * found. If one ICD loader is loaded, through it, because it may have layers of the user's. If there
 * are several, through the object, whose first word is its driver's dispatch table, so that it does
 * not matter which of them made it; without an object, through the first one. If there is none,
 * through the library that has the API.
 */
#ifndef KREX_OPENCL_API_H
#define KREX_OPENCL_API_H

#include <stdbool.h>

#include "../atomic.h"
#include "types.h"

#define KREX_CL_API(kind, ret, name, index, object, params, args)                                  \
    typedef ret(*krex_fn_##name) params;
#include "api.def"
#undef KREX_CL_API

enum {
#define KREX_CL_API(kind, ret, name, index, object, params, args) KREX_INDEX_##name = index,
#include "api.def"
#undef KREX_CL_API
};

/* By dispatch index: the functions of the only loader, or of the only library that has the API; NULL:
 * there are several loaders, or it has no such function, or nobody has looked yet. */
#define KREX_CL_DISPATCH_SIZE 160
extern void *krex_cl_route[KREX_CL_DISPATCH_SIZE];
extern uint32_t krex_cl_loaders; /* how many ICD loaders there are */
void krex_cl_choose_route(void);
void *krex_cl_find_first(int index, const char *name);

static inline void *krex_cl_find(const void *object, int index, const char *name) {
    void *route = index < 0 ? NULL : krex_load_relaxed(&krex_cl_route[index]);
    if (__builtin_expect(route != NULL, 1))
        return route;
    /* Only beside a loader do objects surely have a dispatch table. */
    if (object && krex_load_relaxed(&krex_cl_loaders) > 1)
        return ((const struct krex_cl_object *)object)->dispatch[index];
    return krex_cl_find_first(index, name);
}

#define KREX_REAL(object, name)                                                                    \
    ((krex_fn_##name)krex_cl_find((const void *)(object), KREX_INDEX_##name, #name))

/* What vendor.c lists. */
void krex_cl_drain_begin(bool asks_only);
bool krex_cl_drain_done(void);
void krex_cl_drain_end(void);
bool krex_cl_cares(const char *name);
bool krex_cl_owns(const char *path);
void *krex_cl_find_any(const char *name);
void *krex_cl_hand_out(const char *name, void *real);
void krex_cl_stand_in(bool hooked, uint64_t times);

/* device.c: registers the process for the device of a new context, or reports a second device. */
void krex_cl_context_on(cl_device_id device);

/* drain.c */
void krex_cl_queue_made(cl_command_queue queue);
void krex_cl_queue_retained(cl_command_queue queue);
void krex_cl_queue_releasing(cl_command_queue queue);

#endif
