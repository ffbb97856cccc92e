/* SPDX-License-Identifier: Apache-2.0
 *
 * The ELFs that compilers for devices write: sections, symbols and names. What is not in the file is
 * empty; what is read, and how often, is bounded by the file's size.
 */
#ifndef KREX_SIM_DRIVER_ELF_H
#define KREX_SIM_DRIVER_ELF_H

#include <elf.h>

#include "image.h"

struct drv_elf {
    struct drv_bytes bytes;
    Elf64_Ehdr header;
    struct drv_bytes sections, names; /* the list of sections; their names */
    struct drv_bytes symbols, symbol_names;
    uint64_t budget; /* bytes that may still be looked at or copied */
};

/* With the first table of symbols of that type. false: it is not such an ELF, or not sound. */
bool drv_elf_open(struct drv_elf *elf, struct drv_bytes bytes, uint16_t machine, uint32_t table);

size_t drv_elf_sections(const struct drv_elf *elf);
size_t drv_elf_symbols(const struct drv_elf *elf);
Elf64_Shdr drv_elf_section(const struct drv_elf *elf, size_t index); /* zeros: there is none */
Elf64_Sym drv_elf_symbol(const struct drv_elf *elf, size_t index);
struct drv_bytes drv_elf_contents(const struct drv_elf *elf, const Elf64_Shdr *section);

/* A name of a table of names; empty if it does not end inside. */
const char *drv_elf_name(struct drv_elf *elf, struct drv_bytes table, uint32_t offset,
                         size_t *length);

/* Many sections, or symbols, may name the same bytes: then the work would grow with the square of the
 * image. An honest one needs each byte a few times at most. false: that was too often. */
bool drv_elf_spend(struct drv_elf *elf, uint64_t bytes);

/* The variable that a symbol stands for, if it is sound: st_value counts from `base` to its section's
 * beginning. false: no memory. */
bool drv_elf_add_variable(struct drv_elf *elf, struct drv_image *image, const Elf64_Sym *symbol,
                          uint64_t base);

#endif
