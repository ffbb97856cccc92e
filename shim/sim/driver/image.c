/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what is found in an image.
 */
#include "image.h"

#include <stdlib.h>
#include <string.h>

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

static int by_offset(const void *a_, const void *b_) {
    const struct drv_parameter *a = a_, *b = b_;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

bool drv_kernel_sort_params(struct drv_kernel_info *kernel) {
    uint32_t end = 0;
    if (kernel->params)
        qsort(kernel->params, kernel->param_count, sizeof *kernel->params, by_offset);
    for (uint32_t i = 0; kernel->params && i < kernel->param_count; i++) {
        struct drv_parameter p = kernel->params[i];
        if (p.offset < end || !p.size)
            return false;
        end = p.offset + p.size;
    }
    if (kernel->param_bytes < end)
        kernel->param_bytes = end;
    return end <= DRV_IMAGE_PARAMETER_BYTES;
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

enum drv_result drv_image_read(struct drv_image *image, const void *data, size_t size) {
    *image = (struct drv_image){0};
    enum drv_result status = drv_vendor.read_image(image, (struct drv_bytes){data, size});
    if (status)
        drv_image_free(image);
    return status;
}
