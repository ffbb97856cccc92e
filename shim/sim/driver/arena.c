/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

#define SMALLEST (UINT64_C(1) << 28)
#define PAGE UINT64_C(4096)

static uint64_t base, size;
static unsigned char *inside; /* what the effects see */

/* What is free, by address; no two touch. */
static struct hole {
    struct hole *next;
    uint64_t from, to;
} *holes;

static bool map(uint64_t bytes) {
    int fd = memfd_create("krex-sim-memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    void *outside = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    inside = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (outside == MAP_FAILED || (void *)inside == MAP_FAILED) {
        if (outside != MAP_FAILED)
            munmap(outside, bytes);
        return false;
    }
    /* A forked child can do nothing with it, and a core file need not have it. */
    madvise(outside, bytes, MADV_DONTFORK);
    madvise(inside, bytes, MADV_DONTFORK);
    madvise(outside, bytes, MADV_DONTDUMP);
    madvise(inside, bytes, MADV_DONTDUMP);
    base = (uintptr_t)outside;
    size = bytes;
    return true;
}

bool drv_arena_map(uint64_t bytes) {
    while (bytes >= SMALLEST && !map(bytes))
        bytes /= 2;
    holes = bytes >= SMALLEST ? malloc(sizeof *holes) : NULL;
    if (!holes)
        return false;
    *holes = (struct hole){NULL, base, base + size};
    return true;
}

/* The first that fits; what the alignment leaves in front stays free. */
uint64_t drv_arena_take(uint64_t bytes, uint64_t align) {
    struct hole **place = &holes;
    for (struct hole *h; (h = *place); place = &h->next) {
        uint64_t at = (h->from + align - 1) / align * align;
        if (at > h->to || h->to - at < bytes)
            continue;
        uint64_t rest = at + bytes;
        if (at == h->from && rest == h->to) {
            *place = h->next;
            free(h);
        } else if (at == h->from) {
            h->from = rest;
        } else {
            struct hole *behind = rest < h->to ? malloc(sizeof *behind) : NULL;
            if (rest < h->to && !behind)
                return 0;
            if (behind) {
                *behind = (struct hole){h->next, rest, h->to};
                h->next = behind;
            }
            h->to = at;
        }
        return at;
    }
    return 0;
}

void drv_arena_give(uint64_t address, uint64_t bytes) {
    uint64_t to = address + bytes;
    struct hole **place = &holes, *before = NULL;
    while (*place && (*place)->from < address) {
        before = *place;
        place = &before->next;
    }
    drv_arena_empty(drv_arena_at(address), bytes);
    struct hole *h = *place;
    if (before && before->to == address) {
        before->to = to;
        if (h && h->from == to) {
            before->to = h->to;
            before->next = h->next;
            free(h);
        }
    } else if (h && h->from == to) {
        h->from = address;
    } else if ((h = malloc(sizeof *h))) { /* else the addresses are lost, and nothing else */
        *h = (struct hole){*place, address, to};
        *place = h;
    }
}

bool drv_arena_has(uint64_t address) { return address - base < size; }

void *drv_arena_at(uint64_t address) { return inside + (address - base); }

void drv_arena_empty(void *at, uint64_t bytes) {
    uintptr_t from = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)at + bytes) / PAGE * PAGE;
    if (to > from)
        madvise((void *)from, to - from, MADV_REMOVE);
}
