/* SPDX-License-Identifier: Apache-2.0
 *
 * What modules, libraries and functions share in this face.
 */
#ifndef KREX_SIM_CUDA_LOAD_H
#define KREX_SIM_CUDA_LOAD_H

#include "face.h"
#include "sim/driver/module.h"

void cu_answer_jit_options(unsigned int count, const CUjit_option *options, void **values);
CUresult cu_give_variable(struct drv_module *module, const char *name, CUdeviceptr *dptr,
                          size_t *bytes);

/* Of a function, or of a library's kernel. */
CUresult cu_get_attribute(const struct drv_function *function, CUfunction_attribute attribute,
                          int *value);
/* May be set on a function that nobody launches meanwhile. */
CUresult cu_set_attribute(struct drv_function *function, CUfunction_attribute attribute, int value);
CUresult cu_give_parameter(const struct drv_function *function, size_t index, size_t *offset,
                           size_t *size);

#endif
