/* SPDX-License-Identifier: Apache-2.0
 *
 * What modules, registered kernels and launches share in this face.
 */
#ifndef KREX_SIM_HIP_LOAD_H
#define KREX_SIM_HIP_LOAD_H

#include "face.h"
#include "sim/driver/module.h"

hipError_t hip_give_variable(struct drv_module *module, const char *name, void **address,
                             size_t *bytes);

/* register.c: what a program calls a kernel by: the address of the function that launches it, or a handle.
 * hipErrorInvalidDeviceFunction: neither. */
hipError_t hip_kernel(const void *symbol, struct drv_function **function);
/* The same, in a context: it can be launched there. */
hipError_t hip_function(const void *symbol, struct drv_context *context,
                        const struct drv_function **function);

/* launch.c: what can be submitted, or kept by a graph's node. */
hipError_t hip_launch_work(struct drv_context *context, const void *symbol,
                           const struct drv_shape *shape, void **parameters, void **extra,
                           struct drv_work *work);

#endif
