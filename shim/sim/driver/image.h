/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program hands to a driver as code: which kernels and variables are in it, and what can be known
 * of them without running anything. Each vendor has formats of its own.
 *
 * Images come from anywhere: whatever their bytes are, reading one ends, stays inside it, and takes time
 * and memory in proportion to its size.
 */
#ifndef KREX_SIM_DRIVER_IMAGE_H
#define KREX_SIM_DRIVER_IMAGE_H

#include "sim/driver/driver.h"

enum { DRV_IMAGE_PARAMETER_BYTES = 32764 }; /* of one kernel: the most that any has */

struct drv_kernel_info {
    char *name;
    struct drv_parameter *params;
    uint32_t param_count;
    uint32_t param_bytes; /* all of the block */
    uint32_t max_threads; /* in a block; 0: as many as the device can */
    uint32_t registers;   /* of each thread; 0: not said */
    uint32_t shared_bytes;
    uint32_t local_bytes;
    uint32_t constant_bytes;
};

struct drv_variable_info {
    char *name;
    uint64_t size;
    uint8_t *initial; /* the first initial_size bytes; the rest are zeros */
    size_t initial_size;
    bool managed;
};

struct drv_image {
    struct drv_kernel_info *kernels;
    uint32_t kernel_count;
    struct drv_variable_info *variables;
    uint32_t variable_count;
    uint64_t bytes;       /* of the code that was chosen: what a device has to load */
    uint32_t ptx_version; /* 10 * major + minor of the architecture, as attributes tell it */
    uint32_t binary_version;
};

/* A stretch of an image. */
struct drv_bytes {
    const uint8_t *at;
    size_t size;
};

/* Reads what is at `data`, of `size` bytes; SIZE_MAX: it says itself how long it is, and may be a wrapper
 * that points to another. On failure *image is empty: INVALID_IMAGE, INVALID_PTX, NO_BINARY (a container
 * without code for a GPU), NOT_SUPPORTED (compressed by zstd), OUT_OF_MEMORY. */
enum drv_result drv_image_read(struct drv_image *image, const void *data, size_t size);
void drv_image_free(struct drv_image *image);

/* For those that read one kind of image: each adds what it finds, and leaves it to image.c to free. */
enum drv_result drv_cubin_read(struct drv_image *image, struct drv_bytes elf);
enum drv_result drv_ptx_read(struct drv_image *image, struct drv_bytes text);
enum drv_result drv_fatbin_read(struct drv_image *image, struct drv_bytes fatbin);
enum drv_result drv_hsaco_read(struct drv_image *image, struct drv_bytes elf);

/* What a vendor's driver takes, whatever of these it is: for drv_vendor. */
enum drv_result drv_nvidia_read(struct drv_image *image, struct drv_bytes bytes);
enum drv_result drv_amd_read(struct drv_image *image, struct drv_bytes bytes);

bool drv_is_elf(struct drv_bytes bytes);
bool drv_is_ptx(struct drv_bytes bytes);

/* How long an ELF says it is; 0: it is none. Reads its header and its list of sections. */
size_t drv_elf_extent(const void *data);

/* An entry of the image's, zeroed but for its name, which is copied. NULL: no memory. Good until the next
 * one is added. */
struct drv_kernel_info *drv_image_add_kernel(struct drv_image *image, const char *name,
                                             size_t length);
struct drv_variable_info *drv_image_add_variable(struct drv_image *image, const char *name,
                                                 size_t length);
/* The next of its parameters. */
bool drv_kernel_add_param(struct drv_kernel_info *kernel, struct drv_parameter param);
/* When all are there: in the order of their places. false: they overlap, or are too many. */
bool drv_kernel_sort_params(struct drv_kernel_info *kernel);

/* The part that starts at `offset`; empty with at == NULL if it does not lie inside. */
static inline struct drv_bytes drv_part(struct drv_bytes bytes, uint64_t offset, uint64_t size) {
    if (!bytes.at || offset > bytes.size || size > bytes.size - offset)
        return (struct drv_bytes){NULL, 0};
    return (struct drv_bytes){bytes.at + offset, (size_t)size};
}

#endif
