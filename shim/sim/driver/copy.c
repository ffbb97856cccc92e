/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills, and when their calls return: as the vendors document it. From pageable memory a
 * small source is staged inside the call; a larger copy is waited for, as its staging would be. To
 * pageable memory the call waits. What both ends have on the device never waits.
 */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "driver.h"

enum { STAGED = 65536, EMPTIED = 65536 };

static unsigned char *bytes_at(uint64_t address) {
    return drv_arena_has(address) ? drv_arena_at(address) : (unsigned char *)(uintptr_t)address;
}

static uint64_t bytes_of(const struct drv_copy *c) { return c->width * c->rows * c->planes; }

static bool is_plain(const struct drv_copy *c) {
    bool rows = c->rows == 1 || (c->to_pitch == c->width && c->from_pitch == c->width);
    uint64_t plane = c->width * c->rows;
    return rows && (c->planes == 1 || (c->to_slice == plane && c->from_slice == plane));
}

static enum drv_result copy_effect(struct drv_work *work) {
    const struct drv_copy *c = &work->copy;
    if (is_plain(c)) {
        memmove(bytes_at(c->to), bytes_at(c->from), bytes_of(c));
        return DRV_OK;
    }
    for (uint64_t plane = 0; plane < c->planes; plane++)
        for (uint64_t row = 0; row < c->rows; row++)
            memmove(bytes_at(c->to + plane * c->to_slice + row * c->to_pitch),
                    bytes_at(c->from + plane * c->from_slice + row * c->from_pitch), c->width);
    return DRV_OK;
}

/* From the first byte to behind the last. */
static uint64_t span(const struct drv_copy *c, uint64_t pitch, uint64_t slice) {
    return (c->planes - 1) * slice + (c->rows - 1) * pitch + c->width;
}

/* Whether all of it is there, if it is where the driver can know. */
static bool is_there(uint64_t address, uint64_t bytes) {
    return drv_memory_is_device(address) ? drv_memory_at(address, bytes) != NULL : address != 0;
}

static bool is_pageable(uint64_t address) {
    struct drv_memory m;
    return !drv_memory_is_device(address) && !drv_memory_find(address, &m);
}

enum drv_result drv_copy_work(const struct drv_copy *copy, struct drv_work *work) {
    if (!bytes_of(copy) || !is_there(copy->to, span(copy, copy->to_pitch, copy->to_slice)) ||
        !is_there(copy->from, span(copy, copy->from_pitch, copy->from_slice)))
        return DRV_INVALID_VALUE;
    bool to = drv_memory_is_device(copy->to), from = drv_memory_is_device(copy->from);
    *work = drv_nothing_work(); /* from host to host is no work of the device */
    if (to || from) {
        work->kind = to && from ? KREX_SIM_COPY_WITHIN : to ? KREX_SIM_COPY_TO : KREX_SIM_COPY_FROM;
        work->amount = bytes_of(copy);
    }
    work->effect = copy_effect;
    work->copy = *copy;
    return DRV_OK;
}

/* The source as it is now, packed. */
static bool stage(struct drv_work *work) {
    struct drv_copy *c = &work->copy;
    work->owned_bytes = bytes_of(c);
    work->owned = malloc(work->owned_bytes);
    if (!work->owned)
        return false;
    unsigned char *to = work->owned;
    for (uint64_t plane = 0; plane < c->planes; plane++)
        for (uint64_t row = 0; row < c->rows; row++, to += c->width)
            memcpy(to, bytes_at(c->from + plane * c->from_slice + row * c->from_pitch), c->width);
    c->from = (uintptr_t)work->owned;
    c->from_pitch = c->width;
    c->from_slice = c->width * c->rows;
    return true;
}

/* Whether the call returns only after the copy. */
static bool waits(const struct drv_work *work, bool async) {
    const struct drv_copy *c = &work->copy;
    switch (work->kind) {
    case KREX_SIM_COPY_WITHIN:
        return false;
    case KREX_SIM_COPY_TO:
        return work->owned ? false : !async || is_pageable(c->from);
    case KREX_SIM_COPY_FROM:
        return !async || is_pageable(c->to);
    default:
        return !async || is_pageable(c->to) || is_pageable(c->from);
    }
}

static enum drv_result check_capture(struct drv_stream *stream) {
    drv_lock();
    enum drv_result r = drv_capture_check_unsafe(stream->context);
    if (!r && stream->capture)
        r = drv_capture_check_stream(stream);
    drv_unlock();
    return r;
}

enum drv_result drv_copy(struct drv_stream *stream, const struct drv_copy *copy, bool async) {
    struct drv_work work;
    if (!bytes_of(copy))
        return DRV_OK;
    enum drv_result r = async ? DRV_OK : check_capture(stream);
    if (!r)
        r = drv_copy_work(copy, &work);
    if (r)
        return r;
    if (stream->capture)
        return drv_submit(stream, &work, NULL, 0, NULL);
    bool small = work.kind == KREX_SIM_COPY_TO && work.amount <= STAGED;
    if (small && is_pageable(copy->from) && !stage(&work))
        return DRV_OUT_OF_MEMORY;
    bool wait = waits(&work, async);
    uint64_t seq;
    r = drv_submit(stream, &work, NULL, 0, &seq);
    return r || !wait ? r : drv_wait_seq(stream->context, seq);
}

/* Whole pages of zeros are given back to the system: a large buffer that is only cleared is none. */
static void clear(unsigned char *at, uint64_t bytes, bool device) {
    uint64_t edge = device && bytes >= EMPTIED ? 4096 : bytes;
    memset(at, 0, edge);
    if (edge == bytes)
        return;
    memset(at + bytes - edge, 0, edge);
    drv_arena_empty(at, bytes);
}

static void fill_row(unsigned char *at, const struct drv_fill *f) {
    uint64_t bytes = f->width * f->element;
    if (!f->value) {
        clear(at, bytes, drv_memory_is_device(f->to));
    } else if (f->element == 1) {
        memset(at, (int)f->value, bytes);
    } else {
        for (uint64_t i = 0; i < bytes; i += f->element)
            memcpy(at + i, &f->value, f->element); /* little-endian */
    }
}

static enum drv_result fill_effect(struct drv_work *work) {
    const struct drv_fill *f = &work->fill;
    for (uint64_t row = 0; row < f->rows; row++)
        fill_row(bytes_at(f->to + row * f->pitch), f);
    return DRV_OK;
}

enum drv_result drv_fill_work(const struct drv_fill *fill, struct drv_work *work) {
    if (!fill->width || !fill->rows || fill->to % fill->element)
        return DRV_INVALID_VALUE;
    uint64_t bytes = (fill->rows - 1) * fill->pitch + fill->width * fill->element;
    if (!drv_memory_at(fill->to, bytes))
        return DRV_INVALID_VALUE;
    *work = (struct drv_work){.kind = KREX_SIM_FILL, .effect = fill_effect, .fill = *fill};
    work->amount = fill->rows * fill->width * fill->element;
    return DRV_OK;
}

enum drv_result drv_fill(struct drv_stream *stream, const struct drv_fill *fill) {
    struct drv_work work;
    if (!fill->width || !fill->rows)
        return DRV_OK;
    enum drv_result r = drv_fill_work(fill, &work);
    return r ? r : drv_submit(stream, &work, NULL, 0, NULL);
}
