/* SPDX-License-Identifier: Apache-2.0
 *
 * A block is a row of sequences: a token, literals, then a match, which repeats what was written earlier.
 * The token's halves are the lengths; 15 goes on in bytes of 255 and a last one below. The last sequence
 * ends with its literals.
 */
#include "lz4.h"

#include <string.h>

enum { SHORTEST_MATCH = 4 };

struct output {
    uint8_t *at;
    size_t size, used;
};

static bool take_byte(struct drv_bytes *from, uint8_t *byte) {
    if (!from->size)
        return false;
    *byte = *from->at;
    *from = drv_part(*from, 1, from->size - 1);
    return true;
}

static bool take_length(struct drv_bytes *from, size_t half, size_t *length) {
    uint8_t more = 255;
    *length = half;
    while (half == 15 && more == 255) {
        if (!take_byte(from, &more))
            return false;
        *length += more;
    }
    return true;
}

static bool put_literals(struct drv_bytes *from, struct output *to, size_t length) {
    if (length > from->size || length > to->size - to->used)
        return false;
    if (from->at && length)
        memcpy(to->at + to->used, from->at, length);
    to->used += length;
    *from = drv_part(*from, length, from->size - length);
    return true;
}

/* Byte by byte: a match may reach into what it writes itself. */
static bool put_match(struct output *to, size_t distance, size_t length) {
    if (!distance || distance > to->used || length > to->size - to->used)
        return false;
    for (size_t i = 0; i < length; i++, to->used++)
        to->at[to->used] = to->at[to->used - distance];
    return true;
}

bool drv_lz4_expand(struct drv_bytes from, uint8_t *at, size_t size) {
    struct output to = {at, size, 0};
    uint8_t token, low, high;
    size_t length;
    while (take_byte(&from, &token)) {
        if (!take_length(&from, token >> 4, &length) || !put_literals(&from, &to, length))
            return false;
        if (!from.size)
            return to.used == size;
        if (!take_byte(&from, &low) || !take_byte(&from, &high))
            return false;
        if (!take_length(&from, token & 15, &length) ||
            !put_match(&to, low | (size_t)high << 8, length + SHORTEST_MATCH))
            return false;
    }
    return false;
}
