/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranges of memory that devices may use, by address. Locked by memory.c.
 */
#ifndef KREX_SIM_RANGES_H
#define KREX_SIM_RANGES_H

#include "driver.h"

bool drv_range_add(struct drv_memory *memory); /* false: it overlaps another, or no memory */
struct drv_memory *drv_range_find(uint64_t address);
void drv_range_remove(struct drv_memory *memory);
/* One of this context's; NULL: none is left. */
struct drv_memory *drv_range_of(const struct drv_context *context);

#endif
