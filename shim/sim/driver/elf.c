/* SPDX-License-Identifier: Apache-2.0
 *
 * A 64-bit ELF's sections, symbols and names, whatever is in them.
 */
#include "elf.h"

#include <stdlib.h>
#include <string.h>

bool drv_is_elf(struct drv_bytes bytes) {
    return bytes.size >= sizeof(Elf64_Ehdr) && !memcmp(bytes.at, ELFMAG, SELFMAG) &&
           bytes.at[EI_CLASS] == ELFCLASS64 && bytes.at[EI_DATA] == ELFDATA2LSB;
}

Elf64_Shdr drv_elf_section(const struct drv_elf *e, size_t index) {
    Elf64_Shdr s = {0};
    struct drv_bytes at = drv_part(e->sections, index * sizeof s, sizeof s);
    if (at.at)
        memcpy(&s, at.at, sizeof s);
    return s;
}

size_t drv_elf_sections(const struct drv_elf *e) { return e->sections.size / sizeof(Elf64_Shdr); }

bool drv_elf_spend(struct drv_elf *e, uint64_t bytes) {
    bool enough = e->budget >= bytes;
    e->budget = enough ? e->budget - bytes : 0;
    return enough;
}

struct drv_bytes drv_elf_contents(const struct drv_elf *e, const Elf64_Shdr *s) {
    if (s->sh_type == SHT_NOBITS)
        return (struct drv_bytes){NULL, 0};
    return drv_part(e->bytes, s->sh_offset, s->sh_size);
}

const char *drv_elf_name(struct drv_elf *e, struct drv_bytes table, uint32_t offset,
                         size_t *length) {
    *length = 0;
    if (offset >= table.size)
        return "";
    size_t room = table.size - offset;
    size_t until = strnlen((const char *)table.at + offset, room);
    if (!drv_elf_spend(e, until) || until == room)
        return "";
    *length = until;
    return (const char *)table.at + offset;
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
    struct drv_elf e = {.sections = {(const uint8_t *)data + h.e_shoff, (size_t)(end - h.e_shoff)}};
    if (!end || h.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    if (segments > end)
        end = segments;
    for (size_t i = 0; i < drv_elf_sections(&e); i++) {
        Elf64_Shdr s = drv_elf_section(&e, i);
        uint64_t until = s.sh_type == SHT_NOBITS ? 0 : end_of(s.sh_offset, s.sh_size, 1);
        if (until > end)
            end = until;
    }
    return (size_t)end;
}

static bool find_sections(struct drv_elf *e, uint16_t machine) {
    memcpy(&e->header, e->bytes.at, sizeof e->header);
    if (e->header.e_machine != machine || e->header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    uint64_t size = (uint64_t)e->header.e_shnum * sizeof(Elf64_Shdr);
    e->sections = drv_part(e->bytes, e->header.e_shoff, size);
    Elf64_Shdr s = drv_elf_section(e, e->header.e_shstrndx);
    e->names = drv_elf_contents(e, &s);
    return e->names.at != NULL;
}

static bool find_symbols(struct drv_elf *e, uint32_t table) {
    Elf64_Shdr s = {0};
    for (size_t i = 0; i < drv_elf_sections(e) && !e->symbols.at; i++) {
        s = drv_elf_section(e, i);
        if (s.sh_type == table)
            e->symbols = drv_elf_contents(e, &s);
    }
    if (!e->symbols.at)
        return false;
    s = drv_elf_section(e, s.sh_link);
    e->symbol_names = drv_elf_contents(e, &s);
    return e->symbol_names.at != NULL;
}

bool drv_elf_open(struct drv_elf *elf, struct drv_bytes bytes, uint16_t machine, uint32_t table) {
    *elf = (struct drv_elf){.bytes = bytes, .budget = 16 * (uint64_t)bytes.size};
    return drv_is_elf(bytes) && find_sections(elf, machine) && find_symbols(elf, table);
}

size_t drv_elf_symbols(const struct drv_elf *e) { return e->symbols.size / sizeof(Elf64_Sym); }

Elf64_Sym drv_elf_symbol(const struct drv_elf *e, size_t index) {
    Elf64_Sym s = {0};
    struct drv_bytes at = drv_part(e->symbols, index * sizeof s, sizeof s);
    if (at.at)
        memcpy(&s, at.at, sizeof s);
    return s;
}

bool drv_elf_add_variable(struct drv_elf *e, struct drv_image *image, const Elf64_Sym *s,
                          uint64_t base) {
    Elf64_Shdr in = drv_elf_section(e, s->st_shndx);
    uint64_t at = s->st_value - base;
    size_t length;
    const char *name = drv_elf_name(e, e->symbol_names, s->st_name, &length);
    if (!length || !s->st_size || s->st_value < base || at > in.sh_size ||
        s->st_size > in.sh_size - at)
        return true;
    struct drv_variable_info *v = drv_image_add_variable(image, name, length);
    if (!v)
        return false;
    v->size = s->st_size;
    struct drv_bytes from = drv_part(drv_elf_contents(e, &in), at, s->st_size);
    if (!from.at || !drv_elf_spend(e, from.size))
        return true;
    v->initial = malloc(from.size);
    if (!v->initial)
        return false;
    memcpy(v->initial, from.at, from.size);
    v->initial_size = from.size;
    return true;
}
