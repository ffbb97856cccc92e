/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an AMD code object: an ELF whose note describes the kernels, as MessagePack, and whose symbols
 * are the variables. Of the versions that have such a note: 3 and later.
 */
#include <string.h>

#include "elf.h"
#include "pack.h"

#ifndef EM_AMDGPU
#define EM_AMDGPU 224
#endif

enum { NOTE_METADATA = 32 };

static uint32_t number_of(struct drv_bytes map, uint64_t pairs, const char *key) {
    struct drv_pack value;
    struct drv_bytes after;
    bool found = drv_pack_find(map, pairs, key, &value, &after) && value.kind == DRV_PACK_NUMBER;
    return !found ? 0 : value.number > UINT32_MAX ? UINT32_MAX : (uint32_t)value.number;
}

static bool text_of(struct drv_bytes map, uint64_t pairs, const char *key, struct drv_bytes *text) {
    struct drv_pack value;
    struct drv_bytes after;
    bool found = drv_pack_find(map, pairs, key, &value, &after) && value.kind == DRV_PACK_TEXT;
    *text = value.text;
    return found;
}

/* The runtime fills in those that the program does not know of. */
static bool is_hidden(struct drv_bytes map, uint64_t pairs) {
    struct drv_bytes kind;
    return text_of(map, pairs, ".value_kind", &kind) && kind.size >= strlen("hidden_") &&
           !memcmp(kind.at, "hidden_", strlen("hidden_"));
}

static enum drv_result read_params(struct drv_kernel_info *kernel, struct drv_bytes from,
                                   uint64_t count) {
    for (; count; count--) {
        struct drv_pack param;
        struct drv_bytes map = from;
        if (!drv_pack_skip(&from) || !drv_pack_next(&map, &param) || param.kind != DRV_PACK_MAP)
            return DRV_INVALID_IMAGE;
        struct drv_parameter p = {number_of(map, param.number, ".offset"),
                                  number_of(map, param.number, ".size")};
        if (!is_hidden(map, param.number) && !drv_kernel_add_param(kernel, p))
            return DRV_OUT_OF_MEMORY;
    }
    return drv_kernel_sort_params(kernel) ? DRV_OK : DRV_INVALID_IMAGE;
}

static enum drv_result read_kernel(struct drv_image *image, struct drv_bytes map, uint64_t pairs) {
    struct drv_bytes name, args;
    struct drv_pack list;
    if (!text_of(map, pairs, ".name", &name))
        return DRV_INVALID_IMAGE;
    struct drv_kernel_info *k = drv_image_add_kernel(image, (const char *)name.at, name.size);
    if (!k)
        return DRV_OUT_OF_MEMORY;
    k->max_threads = number_of(map, pairs, ".max_flat_workgroup_size");
    k->shared_bytes = number_of(map, pairs, ".group_segment_fixed_size");
    k->local_bytes = number_of(map, pairs, ".private_segment_fixed_size");
    k->registers = number_of(map, pairs, ".vgpr_count");
    if (!drv_pack_find(map, pairs, ".args", &list, &args) || list.kind != DRV_PACK_LIST)
        return DRV_OK;
    return read_params(k, args, list.number);
}

static enum drv_result read_metadata(struct drv_image *image, struct drv_bytes from) {
    struct drv_pack root, kernels, kernel;
    struct drv_bytes list;
    if (!drv_pack_next(&from, &root) || root.kind != DRV_PACK_MAP ||
        !drv_pack_find(from, root.number, "amdhsa.kernels", &kernels, &list) ||
        kernels.kind != DRV_PACK_LIST)
        return DRV_INVALID_IMAGE;
    enum drv_result r = DRV_OK;
    for (uint64_t i = 0; i < kernels.number && !r; i++) {
        struct drv_bytes map = list;
        if (!drv_pack_skip(&list) || !drv_pack_next(&map, &kernel) || kernel.kind != DRV_PACK_MAP)
            return DRV_INVALID_IMAGE;
        r = read_kernel(image, map, kernel.number);
    }
    return r;
}

static uint64_t padded(uint32_t size) { return ((uint64_t)size + 3) / 4 * 4; }

/* Takes the next note off. */
static bool next_note(struct drv_bytes *from, Elf64_Nhdr *note, struct drv_bytes *owner,
                      struct drv_bytes *contents) {
    if (from->size < sizeof *note)
        return false;
    memcpy(note, from->at, sizeof *note);
    uint64_t begin = sizeof *note + padded(note->n_namesz), end = begin + padded(note->n_descsz);
    *owner = drv_part(*from, sizeof *note, note->n_namesz);
    *contents = drv_part(*from, begin, note->n_descsz);
    *from = end < from->size ? drv_part(*from, end, from->size - end) : drv_part(*from, 0, 0);
    return owner->at && contents->at;
}

static bool find_metadata(struct drv_elf *elf, struct drv_bytes *metadata) {
    static const char amd[] = "AMDGPU";
    for (size_t i = 0; i < drv_elf_sections(elf); i++) {
        Elf64_Shdr s = drv_elf_section(elf, i);
        struct drv_bytes owner, notes = drv_elf_contents(elf, &s);
        Elf64_Nhdr note;
        if (s.sh_type != SHT_NOTE || !notes.at || !drv_elf_spend(elf, notes.size))
            continue;
        while (next_note(&notes, &note, &owner, metadata))
            if (note.n_type == NOTE_METADATA && owner.size == sizeof amd &&
                !memcmp(owner.at, amd, sizeof amd))
                return true;
    }
    return false;
}

/* Every kernel has an object too, which describes it to the hardware. */
static bool is_descriptor(struct drv_elf *elf, const Elf64_Sym *s) {
    size_t length, ending = strlen(".kd");
    const char *name = drv_elf_name(elf, elf->symbol_names, s->st_name, &length);
    return length >= ending && !strcmp(name + length - ending, ".kd");
}

static bool read_variables(struct drv_image *image, struct drv_elf *elf) {
    for (size_t i = 0; i < drv_elf_symbols(elf); i++) {
        Elf64_Sym s = drv_elf_symbol(elf, i);
        bool inside = s.st_shndx != SHN_UNDEF && s.st_shndx < drv_elf_sections(elf);
        if (!inside || ELF64_ST_TYPE(s.st_info) != STT_OBJECT || is_descriptor(elf, &s))
            continue;
        if (!drv_elf_add_variable(elf, image, &s, drv_elf_section(elf, s.st_shndx).sh_addr))
            return false;
    }
    return true;
}

enum drv_result drv_hsaco_read(struct drv_image *image, struct drv_bytes bytes) {
    struct drv_elf elf;
    struct drv_bytes metadata;
    if (!drv_elf_open(&elf, bytes, EM_AMDGPU, SHT_DYNSYM) || !find_metadata(&elf, &metadata))
        return DRV_INVALID_IMAGE;
    enum drv_result r = read_metadata(image, metadata);
    if (!r && !read_variables(image, &elf))
        r = DRV_OUT_OF_MEMORY;
    image->bytes = bytes.size;
    return r || elf.budget ? r : DRV_INVALID_IMAGE;
}
