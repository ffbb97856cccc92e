/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREX_SIM_VISIBLE_H
#define KREX_SIM_VISIBLE_H

#include "sim/wire.h"

/* Fills in which of the channel's devices the program may see, in its order; how many. */
unsigned drv_visible(const struct krex_sim_channel *channel, uint32_t visible[KREX_SIM_DEVICES]);

#endif
