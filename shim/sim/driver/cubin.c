/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a cubin: a 64-bit ELF whose symbol table names the kernels, and whose .nv.info sections describe
 * them by attributes. One pass over the sections, one over the symbols, one over the attributes.
 */
#include <stdlib.h>
#include <string.h>

#include "elf.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

enum {
    ENTRY = 0x10, /* of a symbol's st_other: a kernel, not a function that kernels call */
    MANAGED = 0x04,
};

/* An attribute is its format, its number, and two bytes: the value, or the size of what follows. */
enum { FORMAT_VALUE = 3, FORMAT_SIZED = 4 };

enum attribute {
    MAX_THREADS = 0x05,
    REQUIRED_THREADS = 0x10,
    FRAME_SIZE = 0x11,
    PARAM = 0x17,
    PARAM_BYTES = 0x19,
    REGISTERS = 0x2f,
    WIDE_PARAM = 0x45, /* of kernels with more than 4 KB */
};

struct attribute_value {
    uint8_t format, number;
    uint16_t value; /* or size */
    struct drv_bytes data;
};

struct reader {
    struct drv_image *image;
    struct drv_elf elf;
    uint32_t *kernel_of_section; /* 1 + index in the image; 0: none */
    uint32_t *kernel_of_symbol;
};

static bool starts_with(const char *name, const char *start) {
    return !strncmp(name, start, strlen(start));
}

static bool add_kernel(struct reader *r, size_t index, const Elf64_Sym *s) {
    size_t length;
    const char *name = drv_elf_name(&r->elf, r->elf.symbol_names, s->st_name, &length);
    if (!length || r->kernel_of_section[s->st_shndx])
        return true;
    if (!drv_image_add_kernel(r->image, name, length))
        return false;
    r->kernel_of_section[s->st_shndx] = r->kernel_of_symbol[index] = r->image->kernel_count;
    return true;
}

/* .nv.constant0 holds parameters, .nv.constant4 addresses: neither is a variable's place. */
static bool holds_variables(struct reader *r, const Elf64_Shdr *s) {
    size_t length;
    const char *name = drv_elf_name(&r->elf, r->elf.names, s->sh_name, &length);
    return starts_with(name, ".nv.global") || !strcmp(name, ".nv.constant3");
}

static bool add_variable(struct reader *r, const Elf64_Sym *s) {
    Elf64_Shdr in = drv_elf_section(&r->elf, s->st_shndx);
    uint32_t before = r->image->variable_count;
    if (!holds_variables(r, &in))
        return true;
    if (!drv_elf_add_variable(&r->elf, r->image, s, 0))
        return false;
    if (r->image->variable_count > before)
        r->image->variables[before].managed = s->st_other & MANAGED;
    return true;
}

static bool read_symbols(struct reader *r) {
    for (size_t i = 0; i < drv_elf_symbols(&r->elf); i++) {
        Elf64_Sym s = drv_elf_symbol(&r->elf, i);
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= drv_elf_sections(&r->elf))
            continue;
        unsigned type = ELF64_ST_TYPE(s.st_info);
        bool kernel = type == STT_FUNC && s.st_other & ENTRY;
        if (kernel && !add_kernel(r, i, &s))
            return false;
        if (type == STT_OBJECT && !add_variable(r, &s))
            return false;
    }
    return true;
}

/* Takes the next attribute off. */
static bool next_attribute(struct drv_bytes *from, struct attribute_value *a) {
    if (from->size < 4)
        return false;
    a->format = from->at[0];
    a->number = from->at[1];
    memcpy(&a->value, from->at + 2, sizeof a->value);
    a->data = drv_part(*from, 4, a->format == FORMAT_SIZED ? a->value : 0);
    *from = drv_part(*from, 4 + a->data.size, from->size - 4 - a->data.size);
    return a->data.at != NULL;
}

static uint32_t word(const struct attribute_value *a, size_t index) {
    uint32_t value = 0;
    struct drv_bytes at = drv_part(a->data, index * sizeof value, sizeof value);
    if (at.at)
        memcpy(&value, at.at, sizeof value);
    return value;
}

static uint32_t block_size(const struct attribute_value *a) {
    uint64_t size = (uint64_t)word(a, 0) * word(a, 1);
    size = size > UINT32_MAX ? size : size * word(a, 2);
    return size > UINT32_MAX ? 0 : (uint32_t)size;
}

/* The same in both forms but for the size. They come in any order; they are sorted when all are there. */
static bool add_param(struct drv_kernel_info *kernel, const struct attribute_value *a) {
    uint32_t place = word(a, 1), size = word(a, 2);
    size = a->number == PARAM ? size >> 18 : size & 0xffff;
    return drv_kernel_add_param(kernel, (struct drv_parameter){place >> 16, size});
}

static bool apply(struct drv_kernel_info *kernel, const struct attribute_value *a) {
    if (a->format == FORMAT_VALUE && a->number == PARAM_BYTES)
        kernel->param_bytes = a->value;
    if (a->format != FORMAT_SIZED)
        return true;
    if (a->number == MAX_THREADS || a->number == REQUIRED_THREADS)
        kernel->max_threads = block_size(a);
    if (a->number == PARAM || a->number == WIDE_PARAM)
        return add_param(kernel, a);
    return true;
}

static enum drv_result read_kernel_info(struct drv_kernel_info *kernel, struct drv_bytes from) {
    struct attribute_value a;
    while (next_attribute(&from, &a))
        if (!apply(kernel, &a))
            return DRV_OUT_OF_MEMORY;
    return drv_kernel_sort_params(kernel) ? DRV_OK : DRV_INVALID_IMAGE;
}

/* Attributes of all kernels, each with its symbol's index. */
static void read_common_info(struct reader *r, struct drv_bytes from) {
    struct attribute_value a;
    while (next_attribute(&from, &a)) {
        uint32_t index = word(&a, 0);
        uint32_t kernel = index < drv_elf_symbols(&r->elf) ? r->kernel_of_symbol[index] : 0;
        if (!kernel || a.format != FORMAT_SIZED)
            continue;
        if (a.number == REGISTERS)
            r->image->kernels[kernel - 1].registers = word(&a, 1);
        if (a.number == FRAME_SIZE)
            r->image->kernels[kernel - 1].local_bytes = word(&a, 1);
    }
}

static uint32_t at_most_32_bits(uint64_t size) {
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static enum drv_result read_section(struct reader *r, const Elf64_Shdr *s) {
    size_t length;
    const char *name = drv_elf_name(&r->elf, r->elf.names, s->sh_name, &length);
    if (!strcmp(name, ".nv.info"))
        read_common_info(r, drv_elf_contents(&r->elf, s));
    uint32_t index = s->sh_info < drv_elf_sections(&r->elf) ? r->kernel_of_section[s->sh_info] : 0;
    if (!index)
        return DRV_OK;
    struct drv_kernel_info *kernel = &r->image->kernels[index - 1];
    if (starts_with(name, ".nv.info.") && !kernel->params)
        return drv_elf_spend(&r->elf, s->sh_size)
                   ? read_kernel_info(kernel, drv_elf_contents(&r->elf, s))
                   : DRV_INVALID_IMAGE;
    if (starts_with(name, ".nv.shared."))
        kernel->shared_bytes = at_most_32_bits(s->sh_size);
    if (starts_with(name, ".nv.constant0."))
        kernel->constant_bytes = at_most_32_bits(s->sh_size);
    return DRV_OK;
}

static enum drv_result read_sections(struct reader *r) {
    for (size_t i = 0; i < drv_elf_sections(&r->elf); i++) {
        Elf64_Shdr s = drv_elf_section(&r->elf, i);
        enum drv_result status = read_section(r, &s);
        if (status)
            return status;
    }
    return DRV_OK;
}

/* Which architecture: in the second byte of the flags since ABI 8, in the first before. */
static uint32_t architecture(const Elf64_Ehdr *header) {
    uint32_t new = header->e_flags >> 8 & 0xff, old = header->e_flags & 0xff;
    return header->e_ident[EI_ABIVERSION] >= 8 ? new : old;
}

enum drv_result drv_cubin_read(struct drv_image *image, struct drv_bytes bytes) {
    struct reader r = {.image = image};
    if (!drv_elf_open(&r.elf, bytes, EM_CUDA, SHT_SYMTAB))
        return DRV_INVALID_IMAGE;
    r.kernel_of_section = calloc(drv_elf_sections(&r.elf) + 1, sizeof *r.kernel_of_section);
    r.kernel_of_symbol = calloc(drv_elf_symbols(&r.elf) + 1, sizeof *r.kernel_of_symbol);
    bool memory = r.kernel_of_section && r.kernel_of_symbol && read_symbols(&r);
    enum drv_result status = memory ? read_sections(&r) : DRV_OUT_OF_MEMORY;
    free(r.kernel_of_section);
    free(r.kernel_of_symbol);
    image->bytes = bytes.size;
    image->binary_version = image->ptx_version = architecture(&r.elf.header);
    return status || r.elf.budget ? status : DRV_INVALID_IMAGE;
}
