/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads MessagePack: each value stands for itself, or is followed by those that it holds.
 */
#ifndef KREX_SIM_DRIVER_PACK_H
#define KREX_SIM_DRIVER_PACK_H

#include "image.h"

enum drv_pack_kind { DRV_PACK_NUMBER, DRV_PACK_TEXT, DRV_PACK_LIST, DRV_PACK_MAP, DRV_PACK_OTHER };

struct drv_pack {
    enum drv_pack_kind kind;
    uint64_t number;       /* a NUMBER; how many values a LIST holds, or pairs a MAP */
    struct drv_bytes text; /* of a TEXT, without an end */
};

/* Takes the next value off, but not those that it holds. false: there is none that is sound. */
bool drv_pack_next(struct drv_bytes *from, struct drv_pack *value);

/* Takes a value off with all that it holds. */
bool drv_pack_skip(struct drv_bytes *from);

/* The value of a MAP's key; `from` begins with the first of its `pairs` pairs, and is left alone. false:
 * there is no such key. *after is what follows the value's head. */
bool drv_pack_find(struct drv_bytes from, uint64_t pairs, const char *key, struct drv_pack *value,
                   struct drv_bytes *after);

bool drv_pack_is(const struct drv_pack *value, const char *text);

#endif
