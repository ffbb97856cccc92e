/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the kinds of images apart that NVIDIA's compilers make.
 */
#include <ctype.h>
#include <string.h>

#include "elf.h"

#define WRAPPER UINT32_C(0x466243b1)
#define FATBIN UINT32_C(0xba55ed50)

/* What the compiler leaves in a program, for its runtime to register. */
struct wrapper {
    uint32_t magic, version;
    const void *fatbin;
    const void *file;
};

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* of what follows the header */
};

static enum drv_result read_fatbin(struct drv_image *image, struct drv_bytes bytes) {
    struct fatbin_header header;
    if (bytes.size < sizeof header)
        return DRV_INVALID_IMAGE;
    memcpy(&header, bytes.at, sizeof header);
    if (bytes.size == SIZE_MAX)
        bytes.size = header.size < SIZE_MAX / 2 ? header.header_size + header.size : 0;
    struct drv_bytes inside = drv_part(bytes, header.header_size, header.size);
    return inside.at ? drv_fatbin_read(image, inside) : DRV_INVALID_IMAGE;
}

static uint32_t magic_of(struct drv_bytes bytes) {
    uint32_t magic = 0;
    if (bytes.size >= sizeof magic)
        memcpy(&magic, bytes.at, sizeof magic);
    return magic;
}

/* Text ends at the NUL that text without a size must have: nothing is read beyond it. */
static bool starts_like_text(struct drv_bytes bytes) {
    for (size_t i = 0; i < 4 && i < bytes.size && bytes.at[i]; i++)
        if (!isspace(bytes.at[i]) && !isprint(bytes.at[i]))
            return false;
    return bytes.size > 0;
}

static enum drv_result read_text(struct drv_image *image, struct drv_bytes bytes) {
    bytes.size = strnlen((const char *)bytes.at, bytes.size);
    return drv_is_ptx(bytes) ? drv_ptx_read(image, bytes) : DRV_INVALID_IMAGE;
}

static enum drv_result read_any(struct drv_image *image, struct drv_bytes bytes) {
    if (starts_like_text(bytes))
        return read_text(image, bytes);
    if (magic_of(bytes) == FATBIN)
        return read_fatbin(image, bytes);
    if (bytes.size == SIZE_MAX)
        bytes.size = drv_elf_extent(bytes.at);
    return drv_is_elf(bytes) ? drv_cubin_read(image, bytes) : DRV_INVALID_IMAGE;
}

enum drv_result drv_nvidia_read(struct drv_image *image, struct drv_bytes bytes) {
    /* In a file the pointer would mean nothing. */
    if (bytes.size == SIZE_MAX && !starts_like_text(bytes) && magic_of(bytes) == WRAPPER)
        bytes.at = ((const struct wrapper *)(const void *)bytes.at)->fatbin;
    return read_any(image, bytes);
}
