/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells kinds of images apart, and keeps what is found in one.
 */
#include "image.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/* Grows by half at each power of two: a list costs time in proportion to its length. */
static void *grow(void *list, uint32_t count, size_t size) {
    if (count & (count - 1))
        return list;
    return reallocarray(list, count ? (size_t)count * 2 : 1, size);
}

static char *copy_name(const char *name, size_t length) {
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, name, length);
        copy[length] = 0;
    }
    return copy;
}

struct drv_kernel_info *drv_image_add_kernel(struct drv_image *image, const char *name,
                                             size_t length) {
    void *list = grow(image->kernels, image->kernel_count, sizeof *image->kernels);
    if (!list)
        return NULL;
    image->kernels = list;
    struct drv_kernel_info *kernel = &image->kernels[image->kernel_count];
    *kernel = (struct drv_kernel_info){.name = copy_name(name, length)};
    if (!kernel->name)
        return NULL;
    image->kernel_count++;
    return kernel;
}

struct drv_variable_info *drv_image_add_variable(struct drv_image *image, const char *name,
                                                 size_t length) {
    void *list = grow(image->variables, image->variable_count, sizeof *image->variables);
    if (!list)
        return NULL;
    image->variables = list;
    struct drv_variable_info *variable = &image->variables[image->variable_count];
    *variable = (struct drv_variable_info){.name = copy_name(name, length)};
    if (!variable->name)
        return NULL;
    image->variable_count++;
    return variable;
}

bool drv_kernel_add_param(struct drv_kernel_info *kernel, struct drv_parameter param) {
    void *list = grow(kernel->params, kernel->param_count, sizeof *kernel->params);
    if (!list)
        return false;
    kernel->params = list;
    kernel->params[kernel->param_count++] = param;
    return true;
}

void drv_image_free(struct drv_image *image) {
    for (uint32_t i = 0; i < image->kernel_count; i++) {
        free(image->kernels[i].name);
        free(image->kernels[i].params);
    }
    for (uint32_t i = 0; i < image->variable_count; i++) {
        free(image->variables[i].name);
        free(image->variables[i].initial);
    }
    free(image->kernels);
    free(image->variables);
    *image = (struct drv_image){0};
}

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
    return drv_is_elf(bytes) ? drv_elf_read(image, bytes) : DRV_INVALID_IMAGE;
}

enum drv_result drv_image_read(struct drv_image *image, const void *data, size_t size) {
    struct drv_bytes bytes = {data, size};
    *image = (struct drv_image){0};
    /* In a file the pointer would mean nothing. */
    if (size == SIZE_MAX && !starts_like_text(bytes) && magic_of(bytes) == WRAPPER)
        bytes.at = ((const struct wrapper *)data)->fatbin;
    enum drv_result status = read_any(image, bytes);
    if (status)
        drv_image_free(image);
    return status;
}
