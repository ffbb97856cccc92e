/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include <string.h>

/* The format's heads, of which the smallest have their number inside. */
enum head {
    MAP_SMALL = 0x80,
    LIST_SMALL = 0x90,
    TEXT_SMALL = 0xa0,
    NOTHING = 0xc0,
    BYTES = 0xc4,    /* with a size of 1, 2, 4 bytes */
    TYPED = 0xc7,    /* the same, and a type */
    FLOATS = 0xca,   /* of 4, 8 bytes */
    UNSIGNED = 0xcc, /* of 1, 2, 4, 8 bytes */
    SIGNED = 0xd0,
    TYPED_FIXED = 0xd4, /* of 1, 2, 4, 8, 16 bytes, and a type */
    TEXT = 0xd9,        /* with a size of 1, 2, 4 bytes */
    LIST = 0xdc,        /* of 2, 4 */
    MAP = 0xde,
    NEGATIVE_SMALL = 0xe0,
};

static bool take(struct drv_bytes *from, uint64_t size, struct drv_bytes *taken) {
    *taken = drv_part(*from, 0, size);
    if (!taken->at)
        return false;
    *from = drv_part(*from, size, from->size - size);
    return true;
}

/* Big-endian, of 1 << log bytes. */
static bool take_number(struct drv_bytes *from, unsigned log, uint64_t *number) {
    struct drv_bytes bytes;
    *number = 0;
    if (!take(from, UINT64_C(1) << log, &bytes))
        return false;
    for (size_t i = 0; i < bytes.size; i++)
        *number = *number << 8 | bytes.at[i];
    return true;
}

static bool take_text(struct drv_bytes *from, struct drv_pack *value, uint64_t size) {
    value->kind = DRV_PACK_TEXT;
    return take(from, size, &value->text);
}

static bool hold(struct drv_pack *value, enum drv_pack_kind kind, uint64_t number) {
    value->kind = kind;
    value->number = number;
    return true;
}

static bool take_small(struct drv_bytes *from, struct drv_pack *value, unsigned head) {
    if (head < MAP_SMALL)
        return hold(value, DRV_PACK_NUMBER, head);
    if (head < LIST_SMALL)
        return hold(value, DRV_PACK_MAP, head - MAP_SMALL);
    if (head < TEXT_SMALL)
        return hold(value, DRV_PACK_LIST, head - LIST_SMALL);
    return take_text(from, value, head - TEXT_SMALL);
}

/* What is of no interest: its bytes are only passed. */
static bool take_other(struct drv_bytes *from, unsigned head) {
    struct drv_bytes passed;
    uint64_t size = 0;
    if (head >= TYPED_FIXED && head < TEXT)
        return take(from, 1 + (UINT64_C(1) << (head - TYPED_FIXED)), &passed);
    if (head >= SIGNED && head < TYPED_FIXED)
        return take(from, UINT64_C(1) << (head - SIGNED), &passed);
    if (head >= FLOATS && head < UNSIGNED)
        return take(from, UINT64_C(4) << (head - FLOATS), &passed);
    if (head >= TYPED && head < FLOATS)
        return take_number(from, head - TYPED, &size) && take(from, size + 1, &passed);
    if (head >= BYTES && head < TYPED)
        return take_number(from, head - BYTES, &size) && take(from, size, &passed);
    return true; /* nothing, true, false, a small negative number */
}

bool drv_pack_next(struct drv_bytes *from, struct drv_pack *value) {
    struct drv_bytes first;
    *value = (struct drv_pack){.kind = DRV_PACK_OTHER};
    if (!take(from, 1, &first))
        return false;
    unsigned head = first.at[0];
    uint64_t size = 0;
    if (head < NOTHING)
        return take_small(from, value, head);
    if (head >= UNSIGNED && head < SIGNED) {
        value->kind = DRV_PACK_NUMBER;
        return take_number(from, head - UNSIGNED, &value->number);
    }
    if (head >= TEXT && head < LIST)
        return take_number(from, head - TEXT, &size) && take_text(from, value, size);
    if (head >= LIST && head < MAP)
        return take_number(from, head - LIST + 1, &size) && hold(value, DRV_PACK_LIST, size);
    if (head >= MAP && head < NEGATIVE_SMALL)
        return take_number(from, head - MAP + 1, &size) && hold(value, DRV_PACK_MAP, size);
    return take_other(from, head);
}

bool drv_pack_skip(struct drv_bytes *from) {
    /* Each takes a byte at least: more can't be left. */
    for (uint64_t left = 1; left; left--) {
        struct drv_pack value;
        if (left > from->size || !drv_pack_next(from, &value))
            return false;
        if (value.kind == DRV_PACK_LIST)
            left += value.number;
        if (value.kind == DRV_PACK_MAP)
            left += 2 * value.number;
    }
    return true;
}

bool drv_pack_is(const struct drv_pack *value, const char *text) {
    return value->kind == DRV_PACK_TEXT && value->text.size == strlen(text) &&
           !memcmp(value->text.at, text, value->text.size);
}

bool drv_pack_find(struct drv_bytes from, uint64_t pairs, const char *key, struct drv_pack *value,
                   struct drv_bytes *after) {
    struct drv_pack name;
    for (; pairs; pairs--) {
        if (!drv_pack_next(&from, &name) || name.kind != DRV_PACK_TEXT)
            return false;
        *after = from;
        if (drv_pack_is(&name, key))
            return drv_pack_next(after, value);
        if (!drv_pack_skip(&from))
            return false;
    }
    return false;
}
