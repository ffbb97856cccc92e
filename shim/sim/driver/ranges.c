/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

static struct drv_memory **range; /* sorted */
static size_t ranges, room;

/* The place of the first that begins behind address. */
static size_t upper(uint64_t address) {
    size_t from = 0, to = ranges;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (range[middle]->address <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool has_room(void) {
    if (ranges < room)
        return true;
    size_t wanted = room ? 2 * room : 64;
    struct drv_memory **more = realloc(range, wanted * sizeof *more);
    if (!more)
        return false;
    range = more;
    room = wanted;
    return true;
}

bool drv_range_add(struct drv_memory *memory) {
    size_t i = upper(memory->address);
    uint64_t end = memory->address + memory->reserved;
    if (i && range[i - 1]->address + range[i - 1]->reserved > memory->address)
        return false;
    if ((i < ranges && range[i]->address < end) || !has_room())
        return false;
    memmove(&range[i + 1], &range[i], (ranges - i) * sizeof(struct drv_memory *));
    range[i] = memory;
    ranges++;
    return true;
}

struct drv_memory *drv_range_find(uint64_t address) {
    size_t i = upper(address);
    if (!i || address - range[i - 1]->address >= range[i - 1]->reserved)
        return NULL;
    return range[i - 1];
}

void drv_range_remove(struct drv_memory *memory) {
    size_t i = upper(memory->address);
    if (!i || range[i - 1] != memory)
        return;
    memmove(&range[i - 1], &range[i], (ranges - i) * sizeof(struct drv_memory *));
    ranges--;
}

struct drv_memory *drv_range_of(const struct drv_context *context) {
    for (size_t i = ranges; i; i--)
        if (range[i - 1]->context == context)
            return range[i - 1];
    return NULL;
}
