/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the kinds of images apart that AMD's compilers make: a code object, or a bundle of them, each for
 * one architecture. No code is run here, so any architecture will do: the first one's.
 */
#include <string.h>

#include "elf.h"

#define WRAPPER UINT32_C(0x48495046)

/* What the compiler leaves in a program, for its runtime to register. */
struct wrapper {
    uint32_t magic, version;
    const void *binary;
    const void *unused;
};

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__", compressed_magic[] = "CCOB";

struct entry {
    uint64_t offset, size, name_size;
};

/* Images that don't say how long they are, are trusted as far as they point. */
static bool begins_with(struct drv_bytes bytes, const char *magic) {
    return bytes.size >= strlen(magic) && !strncmp((const char *)bytes.at, magic, strlen(magic));
}

static uint64_t read_u64(struct drv_bytes bytes, uint64_t offset) {
    uint64_t value = 0;
    struct drv_bytes at = drv_part(bytes, offset, sizeof value);
    if (at.at)
        memcpy(&value, at.at, sizeof value);
    return value;
}

/* Of the program that they came with there is one too, which is empty. */
static bool is_device(struct drv_bytes bundle, uint64_t at, const struct entry *e) {
    struct drv_bytes name = drv_part(bundle, at + sizeof *e, e->name_size);
    return name.at && e->size && name.size >= strlen("hip") &&
           !memcmp(name.at, "hip", strlen("hip"));
}

static enum drv_result read_bundle(struct drv_image *image, struct drv_bytes bundle) {
    uint64_t at = strlen(bundle_magic), entries = read_u64(bundle, at);
    at += sizeof entries;
    for (uint64_t i = 0; i < entries; i++) {
        struct entry e = {read_u64(bundle, at), read_u64(bundle, at + 8),
                          read_u64(bundle, at + 16)};
        struct drv_bytes code = drv_part(bundle, e.offset, e.size);
        if (!drv_part(bundle, at + sizeof e, e.name_size).at || !code.at)
            return DRV_INVALID_IMAGE;
        if (is_device(bundle, at, &e))
            return drv_hsaco_read(image, code);
        at += sizeof e + e.name_size;
    }
    return DRV_NO_BINARY;
}

enum drv_result drv_amd_read(struct drv_image *image, struct drv_bytes bytes) {
    struct wrapper wrapper;
    if (bytes.size == SIZE_MAX) {
        memcpy(&wrapper.magic, bytes.at, sizeof wrapper.magic);
        if (wrapper.magic == WRAPPER) /* in a file the pointer would mean nothing */
            bytes.at = ((const struct wrapper *)(const void *)bytes.at)->binary;
    }
    if (begins_with(bytes, bundle_magic))
        return read_bundle(image, bytes);
    if (begins_with(bytes, compressed_magic))
        return DRV_NOT_SUPPORTED;
    if (bytes.size == SIZE_MAX)
        bytes.size = drv_elf_extent(bytes.at);
    return bytes.size ? drv_hsaco_read(image, bytes) : DRV_INVALID_IMAGE;
}
