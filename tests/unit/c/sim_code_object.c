/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD's code objects: one that a compiler made, bundles of them, and bytes as nobody should.
 */
#include "check.h"
#include "sim/driver/image.h"
#include "sim/driver/pack.h"

/* A file of tests/unit/data/sim, as it was when this was compiled (from the root of the tree). */
__asm__(".pushsection .rodata\n.balign 8\nobject_data: .incbin "
        "\"tests/unit/data/sim/kernels.gfx90a.hsaco\"\nobject_end: .byte 0\n.popsection\n");
extern const uint8_t object_data[], object_end[];

static struct drv_bytes object(void) {
    return (struct drv_bytes){object_data, (uintptr_t)object_end - (uintptr_t)object_data};
}

static struct drv_image image;

static enum drv_result read_bytes(struct drv_bytes bytes) {
    return drv_image_read(&image, bytes.at, bytes.size);
}

static const struct drv_kernel_info *kernel(const char *name) {
    for (uint32_t i = 0; i < image.kernel_count; i++)
        if (!strcmp(image.kernels[i].name, name))
            return &image.kernels[i];
    FAIL("no such kernel");
}

static bool parameter_is(const struct drv_kernel_info *k, uint32_t i, uint32_t at, uint32_t size) {
    return i < k->param_count && k->params[i].offset == at && k->params[i].size == size;
}

static void check_object(void) {
    CHECK(image.kernel_count == 10);
    const struct drv_kernel_info *k = kernel("krex_axpy_f32");
    CHECK(k->param_count == 4 && k->param_bytes == 24 && k->max_threads == 1024);
    CHECK(parameter_is(k, 0, 0, 4) && parameter_is(k, 1, 4, 4));
    CHECK(parameter_is(k, 2, 8, 8) && parameter_is(k, 3, 16, 8));
    k = kernel("blocks_of_64");
    CHECK(k->param_count == 1 && k->max_threads == 64 && k->shared_bytes == 256);
    CHECK(kernel("nothing")->param_count == 0);
    CHECK(image.variable_count == 1 && !strcmp(image.variables[0].name, "counter"));
    CHECK(image.variables[0].size == 4 && image.variables[0].initial_size == 4);
    CHECK(image.variables[0].initial[0] == 7);
    drv_image_free(&image);
}

/* GIVEN an object that a compiler made WHEN it is read, with its size and without THEN its kernels are
 * there with their parameters, and its variables; what the runtime fills in is not. */
static void as_compiled(void) {
    CHECK(read_bytes(object()) == DRV_OK);
    check_object();
    CHECK(drv_image_read(&image, object().at, SIZE_MAX) == DRV_OK);
    check_object();
}

/* Bundles. */

enum { CODE_AT = 4096 };

static void put(uint8_t **at, const void *bytes, size_t size) {
    memcpy(*at, bytes, size);
    *at += size;
}

static void put_entry(uint8_t **at, uint64_t size, const char *name) {
    const uint64_t numbers[3] = {CODE_AT, size, strlen(name)};
    put(at, numbers, sizeof numbers);
    put(at, name, strlen(name));
}

/* Of entries for the host and (name not NULL) for one device; its size. */
static size_t bundle(uint8_t **made, const char *name) {
    struct drv_bytes code = object();
    uint8_t *to = *made = calloc(1, CODE_AT + code.size);
    CHECK(to != NULL);
    const uint64_t entries = name ? 2 : 1;
    put(&to, "__CLANG_OFFLOAD_BUNDLE__", 24);
    put(&to, &entries, sizeof entries);
    put_entry(&to, 0, "host-x86_64-unknown-linux--");
    if (name)
        put_entry(&to, code.size, name);
    memcpy(*made + CODE_AT, code.at, code.size);
    return CODE_AT + code.size;
}

static void bundled(void) {
    struct {
        uint32_t magic, version;
        const void *binary, *unused;
    } wrapper = {0x48495046, 1, NULL, NULL};
    uint8_t *bytes;
    size_t size = bundle(&bytes, "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+");
    wrapper.binary = bytes;
    CHECK(drv_image_read(&image, bytes, size) == DRV_OK);
    check_object();
    CHECK(drv_image_read(&image, &wrapper, SIZE_MAX) == DRV_OK);
    check_object();
    CHECK(drv_image_read(&image, &wrapper, sizeof wrapper) == DRV_INVALID_IMAGE);
    free(bytes);
}

static void of_nothing_for_a_device(void) {
    uint8_t *bytes;
    size_t size = bundle(&bytes, NULL);
    CHECK(drv_image_read(&image, bytes, size) == DRV_NO_BINARY);
    bytes[24] = 0xff; /* many more entries than there are */
    CHECK(drv_image_read(&image, bytes, size) == DRV_INVALID_IMAGE);
    free(bytes);
    static const uint8_t compressed[32] = "CCOB";
    CHECK(drv_image_read(&image, compressed, sizeof compressed) == DRV_NOT_SUPPORTED);
}

/* MessagePack. */

static void values(void) {
    static const uint8_t map[] = {0x83, 0xa1, 'a',  0x92, 0xc0, 0xcb, 1,   2,    3,    4,
                                  5,    6,    7,    8,    0xd9, 0x01, 'b', 0xcd, 0x01, 0x02,
                                  0xa1, 'c',  0xc7, 0x02, 0x05, 9,    9,   0xd4, 1,    1};
    struct drv_bytes from = {map, sizeof map}, all = from, after;
    struct drv_pack root, value;
    CHECK(drv_pack_next(&from, &root) && root.kind == DRV_PACK_MAP && root.number == 3);
    CHECK(drv_pack_find(from, root.number, "b", &value, &after));
    CHECK(value.kind == DRV_PACK_NUMBER && value.number == 0x102);
    CHECK(drv_pack_find(from, root.number, "a", &value, &after));
    CHECK(value.kind == DRV_PACK_LIST && value.number == 2);
    CHECK(!drv_pack_find(from, root.number, "d", &value, &after));
    CHECK(drv_pack_skip(&all) && all.size == 3);
    CHECK(drv_pack_skip(&all) && !all.size && !drv_pack_skip(&all));
    static const uint8_t endless[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0};
    struct drv_bytes long_list = {endless, sizeof endless};
    CHECK(!drv_pack_skip(&long_list));
}

/* Hostile bytes. Each is read from memory of exactly its size: a sanitizer sees what goes beyond. */

static uint64_t random_state = 88172645463325252;

static uint32_t random_below(uint64_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state % limit);
}

static void read_copy(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy != NULL);
    memcpy(copy, bytes, size);
    if (drv_image_read(&image, copy, size))
        CHECK(image.kernel_count == 0 && image.kernels == NULL && image.variables == NULL);
    drv_image_free(&image);
    free(copy);
}

static void mutated(const uint8_t *bytes, size_t size) {
    uint8_t *changed = malloc(size);
    CHECK(changed != NULL);
    for (int round = 0; round < rounds(3000); round++) {
        memcpy(changed, bytes, size);
        for (uint32_t i = 1 + random_below(6); i; i--)
            changed[random_below(2) ? random_below(6000) : random_below(size)] =
                (uint8_t)random_below(256);
        read_copy(changed, random_below(8) ? size : random_below(size));
    }
    free(changed);
}

static void hostile(void) {
    uint8_t *bytes;
    size_t size = bundle(&bytes, "hip-amdgcn-amd-amdhsa--gfx90a");
    mutated(object().at, object().size);
    mutated(bytes, size);
    free(bytes);
}

int main(void) {
    as_compiled();
    bundled();
    of_nothing_for_a_device();
    values();
    hostile();
    return 0;
}
