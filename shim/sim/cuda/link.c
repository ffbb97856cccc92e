/* SPDX-License-Identifier: Apache-2.0
 *
 * cuLink*: what comes out is the last image that went in and has kernels, as it was. No code is run here,
 * so nothing has to be joined.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"

struct link {
    unsigned char *image; /* with a NUL behind it */
    size_t size;
};

static CUresult enter_link(CUlinkState handle, struct link **link) {
    enum drv_result r = drv_ready();
    *link = (struct link *)handle;
    return cu_result(r ? r : drv_handle_is(DRV_LINK, handle) ? DRV_OK : DRV_INVALID_HANDLE);
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut) {
    struct drv_context *context;
    CUresult r = cu_enter(&context);
    if (r || !stateOut)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    cu_answer_jit_options(numOptions, options, optionValues);
    struct link *link = calloc(1, sizeof *link);
    if (!link || !drv_handle_add(DRV_LINK, link)) {
        free(link);
        return cu_result(DRV_OUT_OF_MEMORY);
    }
    *stateOut = (CUlinkState)link;
    return CUDA_SUCCESS;
}

/* Takes the bytes over. */
static CUresult keep(struct link *link, unsigned char *image, size_t size) {
    struct drv_image read;
    enum drv_result r = drv_image_read(&read, image, size);
    bool wanted = !r && (read.kernel_count || !link->image);
    if (!r)
        drv_image_free(&read);
    if (wanted) {
        free(link->image);
        link->image = image;
        link->size = size;
    } else {
        free(image);
    }
    return cu_result(r);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned int numOptions, CUjit_option *options,
                          void **optionValues) {
    struct link *link;
    (void)type;
    (void)name;
    CUresult r = enter_link(state, &link);
    if (r || !data || !size)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    cu_answer_jit_options(numOptions, options, optionValues);
    unsigned char *image = calloc(1, size + 1);
    if (!image)
        return cu_result(DRV_OUT_OF_MEMORY);
    memcpy(image, data, size);
    return keep(link, image, size);
}

/* All of a file, with a NUL behind it. NULL: it can't be read. */
static unsigned char *read_file(const char *path, size_t *size) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    size_t length = fstat(file, &status) ? 0 : (size_t)status.st_size;
    unsigned char *image = calloc(1, length + 1);
    ssize_t got = image ? read(file, image, length) : -1;
    close(file);
    if (got < 0) {
        free(image);
        return NULL;
    }
    *size = (size_t)got;
    return image;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int numOptions, CUjit_option *options, void **optionValues) {
    struct link *link;
    size_t size;
    (void)type;
    CUresult r = enter_link(state, &link);
    if (r || !path)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    cu_answer_jit_options(numOptions, options, optionValues);
    unsigned char *image = read_file(path, &size);
    return image ? keep(link, image, size) : cu_result(DRV_FILE_NOT_FOUND);
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    struct link *link;
    CUresult r = enter_link(state, &link);
    if (r || !cubinOut)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (!link->image)
        return cu_result(DRV_INVALID_IMAGE);
    *cubinOut = link->image;
    if (sizeOut)
        *sizeOut = link->size;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    struct link *link;
    CUresult r = enter_link(state, &link);
    if (r)
        return r;
    drv_handle_remove(link);
    free(link->image);
    free(link);
    return r;
}
