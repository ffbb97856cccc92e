/* SPDX-License-Identifier: Apache-2.0
 *
 * An image that was read, shared by what was made of it, and what it says to a device.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "module.h"

enum {
    THREADS = 1024,
    UNKNOWN_REGISTERS = 32, /* PTX does not say: an assembler would decide */
    NO_CARVEOUT = -1,
};

enum drv_result drv_code_read(const void *data, size_t size, struct drv_code **code) {
    struct drv_code *c = calloc(1, sizeof *c);
    if (!c)
        return DRV_OUT_OF_MEMORY;
    c->references = 1;
    enum drv_result r = drv_image_read(&c->image, data, size);
    if (r)
        free(c);
    *code = r ? NULL : c;
    return r;
}

enum drv_result drv_code_read_file(const char *path, struct drv_code **code) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return DRV_FILE_NOT_FOUND;
    enum drv_result r = DRV_INVALID_IMAGE;
    size_t size = fstat(file, &status) || status.st_size < 0 ? 0 : (size_t)status.st_size;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (data == MAP_FAILED)
        return r;
    r = drv_code_read(data, size, code);
    munmap(data, size);
    return r;
}

void drv_code_release(struct drv_code *code) {
    if (--code->references)
        return;
    drv_image_free(&code->image);
    free(code);
}

static uint32_t version(uint32_t said, const struct drv_device *device) {
    return said ? said : device->is->major * 10 + device->is->minor;
}

void drv_code_describe(const struct drv_code *code, const struct drv_device *device, uint32_t index,
                       struct drv_function *f) {
    const struct drv_kernel_info *k = &code->image.kernels[index];
    *f = (struct drv_function){.name = k->name, .parameter = k->params};
    f->parameters = k->param_count;
    f->parameter_bytes = k->param_bytes;
    f->max_threads = k->max_threads && k->max_threads < THREADS ? k->max_threads : THREADS;
    f->registers = k->registers ? k->registers : UNKNOWN_REGISTERS;
    f->shared_bytes = k->shared_bytes;
    f->const_bytes = k->constant_bytes;
    f->local_bytes = k->local_bytes;
    f->max_dynamic_shared =
        k->shared_bytes < drv_vendor.shared_bytes ? drv_vendor.shared_bytes - k->shared_bytes : 0;
    f->carveout = NO_CARVEOUT;
    f->ptx_version = version(code->image.ptx_version, device);
    f->binary_version = version(code->image.binary_version, device);
    drv_catalogue_look_up(f);
}
