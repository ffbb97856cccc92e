/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a cubin: a 64-bit ELF whose symbol table names the kernels, and whose .nv.info sections describe
 * them by attributes. One pass over the sections, one over the symbols, one over the attributes.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

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
    struct drv_bytes elf;
    Elf64_Ehdr header;
    struct drv_bytes sections, names; /* the list of sections; their names */
    struct drv_bytes symbols, symbol_names;
    uint32_t *kernel_of_section; /* 1 + index in the image; 0: none */
    uint32_t *kernel_of_symbol;
    uint64_t budget; /* bytes that may still be looked at or copied */
};

bool drv_is_elf(struct drv_bytes bytes) {
    return bytes.size >= sizeof(Elf64_Ehdr) && !memcmp(bytes.at, ELFMAG, SELFMAG) &&
           bytes.at[EI_CLASS] == ELFCLASS64 && bytes.at[EI_DATA] == ELFDATA2LSB;
}

static Elf64_Shdr section(const struct reader *r, size_t index) {
    Elf64_Shdr s = {0};
    struct drv_bytes at = drv_part(r->sections, index * sizeof s, sizeof s);
    if (at.at)
        memcpy(&s, at.at, sizeof s);
    return s;
}

static size_t section_count(const struct reader *r) {
    return r->sections.size / sizeof(Elf64_Shdr);
}

/* Many sections, or symbols, may name the same bytes: then the work would grow with the square of the
 * image. An honest one needs each byte a few times at most. */
static bool spend(struct reader *r, uint64_t bytes) {
    bool enough = r->budget >= bytes;
    r->budget = enough ? r->budget - bytes : 0;
    return enough;
}

static struct drv_bytes contents(const struct reader *r, const Elf64_Shdr *s) {
    if (s->sh_type == SHT_NOBITS)
        return (struct drv_bytes){NULL, 0};
    return drv_part(r->elf, s->sh_offset, s->sh_size);
}

/* A name of a table of names; empty if it does not end inside. */
static const char *name_at(struct reader *r, struct drv_bytes table, uint32_t offset,
                           size_t *length) {
    *length = 0;
    if (offset >= table.size)
        return "";
    size_t room = table.size - offset;
    size_t until = strnlen((const char *)table.at + offset, room);
    if (!spend(r, until) || until == room)
        return "";
    *length = until;
    return (const char *)table.at + offset;
}

static bool starts_with(const char *name, const char *start) {
    return !strncmp(name, start, strlen(start));
}

static uint64_t end_of(uint64_t offset, uint64_t count, uint64_t size) {
    uint64_t end = 0;
    bool over = __builtin_mul_overflow(count, size, &end) ||
                __builtin_add_overflow(end, offset, &end) || end > SIZE_MAX / 2;
    return over ? 0 : end;
}

size_t drv_elf_extent(const void *data) {
    Elf64_Ehdr h;
    struct drv_bytes bytes = {data, sizeof h};
    if (!drv_is_elf(bytes))
        return 0;
    memcpy(&h, data, sizeof h);
    uint64_t end = end_of(h.e_shoff, h.e_shnum, h.e_shentsize);
    uint64_t segments = end_of(h.e_phoff, h.e_phnum, h.e_phentsize);
    struct reader r = {.sections = {(const uint8_t *)data + h.e_shoff, (size_t)(end - h.e_shoff)}};
    if (!end || h.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    if (segments > end)
        end = segments;
    for (size_t i = 0; i < section_count(&r); i++) {
        Elf64_Shdr s = section(&r, i);
        uint64_t until = s.sh_type == SHT_NOBITS ? 0 : end_of(s.sh_offset, s.sh_size, 1);
        if (until > end)
            end = until;
    }
    return (size_t)end;
}

static bool find_tables(struct reader *r) {
    memcpy(&r->header, r->elf.at, sizeof r->header);
    if (r->header.e_machine != EM_CUDA || r->header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    uint64_t size = (uint64_t)r->header.e_shnum * sizeof(Elf64_Shdr);
    r->sections = drv_part(r->elf, r->header.e_shoff, size);
    Elf64_Shdr s = section(r, r->header.e_shstrndx);
    r->names = contents(r, &s);
    for (size_t i = 0; i < section_count(r) && !r->symbols.at; i++) {
        s = section(r, i);
        if (s.sh_type == SHT_SYMTAB)
            r->symbols = contents(r, &s);
    }
    if (!r->names.at || !r->symbols.at)
        return false;
    s = section(r, s.sh_link);
    r->symbol_names = contents(r, &s);
    return r->symbol_names.at != NULL;
}

static Elf64_Sym symbol(const struct reader *r, size_t index) {
    Elf64_Sym s = {0};
    struct drv_bytes at = drv_part(r->symbols, index * sizeof s, sizeof s);
    if (at.at)
        memcpy(&s, at.at, sizeof s);
    return s;
}

static bool add_kernel(struct reader *r, size_t index, const Elf64_Sym *s) {
    size_t length;
    const char *name = name_at(r, r->symbol_names, s->st_name, &length);
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
    const char *name = name_at(r, r->names, s->sh_name, &length);
    return starts_with(name, ".nv.global") || !strcmp(name, ".nv.constant3");
}

static bool add_variable(struct reader *r, const Elf64_Sym *s) {
    Elf64_Shdr in = section(r, s->st_shndx);
    size_t length;
    const char *name = name_at(r, r->symbol_names, s->st_name, &length);
    if (!length || !s->st_size || !holds_variables(r, &in))
        return true;
    if (s->st_value > in.sh_size || s->st_size > in.sh_size - s->st_value)
        return true;
    struct drv_variable_info *v = drv_image_add_variable(r->image, name, length);
    if (!v)
        return false;
    v->size = s->st_size;
    v->managed = s->st_other & MANAGED;
    struct drv_bytes from = drv_part(contents(r, &in), s->st_value, s->st_size);
    if (!from.at || !spend(r, from.size))
        return true;
    v->initial = malloc(from.size);
    if (!v->initial)
        return false;
    memcpy(v->initial, from.at, from.size);
    v->initial_size = from.size;
    return true;
}

static bool read_symbols(struct reader *r) {
    for (size_t i = 0; i < r->symbols.size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s = symbol(r, i);
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= section_count(r))
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

static int by_offset(const void *a_, const void *b_) {
    const struct drv_parameter *a = a_, *b = b_;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static bool parameters_are_sound(struct drv_kernel_info *kernel) {
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

static enum drv_result read_kernel_info(struct drv_kernel_info *kernel, struct drv_bytes from) {
    struct attribute_value a;
    while (next_attribute(&from, &a))
        if (!apply(kernel, &a))
            return DRV_OUT_OF_MEMORY;
    return parameters_are_sound(kernel) ? DRV_OK : DRV_INVALID_IMAGE;
}

/* Attributes of all kernels, each with its symbol's index. */
static void read_common_info(struct reader *r, struct drv_bytes from) {
    struct attribute_value a;
    while (next_attribute(&from, &a)) {
        uint32_t index = word(&a, 0);
        uint32_t kernel =
            index < r->symbols.size / sizeof(Elf64_Sym) ? r->kernel_of_symbol[index] : 0;
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
    const char *name = name_at(r, r->names, s->sh_name, &length);
    if (!strcmp(name, ".nv.info"))
        read_common_info(r, contents(r, s));
    uint32_t index = s->sh_info < section_count(r) ? r->kernel_of_section[s->sh_info] : 0;
    if (!index)
        return DRV_OK;
    struct drv_kernel_info *kernel = &r->image->kernels[index - 1];
    if (starts_with(name, ".nv.info.") && !kernel->params)
        return spend(r, s->sh_size) ? read_kernel_info(kernel, contents(r, s)) : DRV_INVALID_IMAGE;
    if (starts_with(name, ".nv.shared."))
        kernel->shared_bytes = at_most_32_bits(s->sh_size);
    if (starts_with(name, ".nv.constant0."))
        kernel->constant_bytes = at_most_32_bits(s->sh_size);
    return DRV_OK;
}

static enum drv_result read_sections(struct reader *r) {
    for (size_t i = 0; i < section_count(r); i++) {
        Elf64_Shdr s = section(r, i);
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

enum drv_result drv_elf_read(struct drv_image *image, struct drv_bytes elf) {
    struct reader r = {.image = image, .elf = elf, .budget = 16 * (uint64_t)elf.size};
    if (!drv_is_elf(elf) || !find_tables(&r))
        return DRV_INVALID_IMAGE;
    r.kernel_of_section = calloc(section_count(&r) + 1, sizeof *r.kernel_of_section);
    r.kernel_of_symbol = calloc(r.symbols.size / sizeof(Elf64_Sym) + 1, sizeof *r.kernel_of_symbol);
    bool memory = r.kernel_of_section && r.kernel_of_symbol && read_symbols(&r);
    enum drv_result status = memory ? read_sections(&r) : DRV_OUT_OF_MEMORY;
    free(r.kernel_of_section);
    free(r.kernel_of_symbol);
    image->bytes = elf.size;
    image->binary_version = image->ptx_version = architecture(&r.header);
    return status || r.budget ? status : DRV_INVALID_IMAGE;
}
