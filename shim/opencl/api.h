/* SPDX-License-Identifier: Apache-2.0
 *
 * From api.def: a function type and a dispatch index for each entry, and how the real function is
 * found: through the object, whose first word is its driver's dispatch table, so that it does not
 * matter which of several loaders the program uses; without an object, through a loaded loader.
 */
#ifndef KREX_OPENCL_API_H
#define KREX_OPENCL_API_H

#include <stdbool.h>

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

/* An exported function of a loaded ICD loader, by name; NULL: none is loaded that has it. */
void *krex_cl_from_loader(const char *name);

static inline void *krex_cl_find(const void *object, int index, const char *name) {
    if (!object)
        return krex_cl_from_loader(name);
    return ((const struct krex_cl_object *)object)->dispatch[index];
}

#define KREX_REAL(object, name)                                                                    \
    ((krex_fn_##name)krex_cl_find((const void *)(object), KREX_INDEX_##name, #name))

/* device.c: registers the process for the device of a new context, or reports a second device. */
void krex_cl_context_on(cl_device_id device);

/* drain.c */
void krex_cl_queue_made(cl_command_queue queue);
void krex_cl_queue_retained(cl_command_queue queue);
void krex_cl_queue_releasing(cl_command_queue queue);

#endif
