/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes apart a block in LZ4's format.
 */
#ifndef KREX_SIM_LZ4_H
#define KREX_SIM_LZ4_H

#include "image.h"

/* Whether `from` was a sound block of exactly `size` bytes, which are in `to` then. */
bool drv_lz4_expand(struct drv_bytes from, uint8_t *to, size_t size);

#endif
