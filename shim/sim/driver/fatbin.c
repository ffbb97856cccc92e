/* SPDX-License-Identifier: Apache-2.0
 *
 * A fatbin is a row of entries, each an ELF or PTX for one architecture, perhaps compressed. No code is
 * run here, so any architecture will do: the first ELF that can be read, else the first PTX.
 */
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "lz4.h"

enum { KIND_PTX = 1, KIND_ELF = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };

/* No honest image comes near; and LZ4 can't make more of its input than this. */
enum { MOST_EXPANDED = 1 << 30, LZ4_RATIO = 256 };

struct entry_header {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, options;
    uint16_t minor, major;
    uint32_t architecture;
    uint32_t name, name_length;
    uint64_t flags;
    uint64_t zero;
    uint64_t expanded_size;
};
_Static_assert(sizeof(struct entry_header) == 64, "as the compiler writes it");

struct entry {
    struct entry_header header;
    struct drv_bytes data;
};

static bool next_entry(struct drv_bytes *from, struct entry *entry) {
    struct entry_header *h = &entry->header;
    if (from->size < sizeof *h)
        return false;
    memcpy(h, from->at, sizeof *h);
    entry->data = drv_part(*from, h->header_size, h->size);
    if (h->header_size < sizeof *h || !entry->data.at)
        return false;
    size_t used = h->header_size + entry->data.size;
    *from = drv_part(*from, used, from->size - used);
    return true;
}

static enum drv_result read_plain(struct drv_image *image, const struct entry_header *h,
                                  struct drv_bytes data) {
    if (h->kind == KIND_ELF)
        return drv_cubin_read(image, data);
    data.size = strnlen((const char *)data.at, data.size);
    return drv_ptx_read(image, data);
}

static enum drv_result read_compressed(struct drv_image *image, const struct entry *entry) {
    const struct entry_header *h = &entry->header;
    struct drv_bytes from = drv_part(entry->data, 0, h->compressed_size);
    if (!from.at || h->expanded_size > MOST_EXPANDED ||
        h->expanded_size > (uint64_t)from.size * LZ4_RATIO)
        return DRV_INVALID_IMAGE;
    uint8_t *to = malloc(h->expanded_size + 1);
    if (!to)
        return DRV_OUT_OF_MEMORY;
    enum drv_result status = DRV_INVALID_IMAGE;
    if (drv_lz4_expand(from, to, h->expanded_size))
        status = read_plain(image, h, (struct drv_bytes){to, h->expanded_size});
    free(to);
    return status;
}

static enum drv_result read_entry(struct drv_image *image, const struct entry *entry) {
    if (entry->header.flags & FLAG_ZSTD)
        return DRV_NOT_SUPPORTED;
    if (entry->header.flags & FLAG_LZ4)
        return read_compressed(image, entry);
    return read_plain(image, &entry->header, entry->data);
}

static enum drv_result read_first(struct drv_image *image, struct drv_bytes from, int kind,
                                  enum drv_result otherwise) {
    struct entry entry;
    while (next_entry(&from, &entry)) {
        if (entry.header.kind != kind)
            continue;
        otherwise = read_entry(image, &entry);
        if (otherwise != DRV_NOT_SUPPORTED)
            break;
    }
    return otherwise;
}

enum drv_result drv_fatbin_read(struct drv_image *image, struct drv_bytes fatbin) {
    enum drv_result status = read_first(image, fatbin, KIND_ELF, DRV_NO_BINARY);
    if (status != DRV_NO_BINARY && status != DRV_NOT_SUPPORTED)
        return status;
    return read_first(image, fatbin, KIND_PTX, status);
}
