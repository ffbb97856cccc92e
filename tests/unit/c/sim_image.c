/* SPDX-License-Identifier: Apache-2.0
 *
 * Images that compilers made, text as people write it, and bytes as nobody should.
 */
#include "check.h"
#include "sim/driver/image.h"
#include "sim/driver/lz4.h"

/* A file of tests/unit/data/sim, as it was when this was compiled (from the root of the tree). */
#define DATA(name, file)                                                                           \
    __asm__(".pushsection .rodata\n.balign 8\n" #name "_data: .incbin \"tests/unit/data/sim/" file \
            "\"\n" #name "_end: .byte 0\n.popsection\n");                                          \
    extern const uint8_t name##_data[], name##_end[];                                              \
    static struct drv_bytes name(void) {                                                           \
        return (struct drv_bytes){name##_data, (uintptr_t)name##_end - (uintptr_t)name##_data};    \
    }

DATA(cubin, "kernels.sm_90.cubin")
DATA(wide, "wide.sm_75.cubin")
DATA(ptx, "kernels.ptx")
DATA(plain, "none.fatbin")
DATA(by_lz4, "speed.fatbin")
DATA(by_zstd, "size.fatbin")

static struct drv_image image;

static enum drv_result read_bytes(struct drv_bytes bytes) {
    return drv_image_read(&image, bytes.at, bytes.size);
}

static enum drv_result read_ptx(const char *text) { return drv_image_read(&image, text, SIZE_MAX); }

static const struct drv_kernel_info *kernel(const char *name) {
    for (uint32_t i = 0; i < image.kernel_count; i++)
        if (!strcmp(image.kernels[i].name, name))
            return &image.kernels[i];
    FAIL("no such kernel");
}

static const struct drv_variable_info *variable(const char *name) {
    for (uint32_t i = 0; i < image.variable_count; i++)
        if (!strcmp(image.variables[i].name, name))
            return &image.variables[i];
    FAIL("no such variable");
}

static bool parameter_is(const struct drv_kernel_info *k, uint32_t i, uint32_t at, uint32_t size) {
    return i < k->param_count && k->params[i].offset == at && k->params[i].size == size;
}

static void check_kernels(void) {
    CHECK(image.kernel_count == 2);
    const struct drv_kernel_info *k = kernel("krex_axpy_f32");
    CHECK(k->param_count == 4 && k->param_bytes == 24 && k->max_threads == 0);
    CHECK(parameter_is(k, 0, 0, 4) && parameter_is(k, 1, 4, 4));
    CHECK(parameter_is(k, 2, 8, 8) && parameter_is(k, 3, 16, 8));
    k = kernel("tiled");
    CHECK(k->param_count == 4 && k->param_bytes == 24 && k->max_threads == 128);
    CHECK(parameter_is(k, 0, 0, 8) && parameter_is(k, 1, 8, 1));
    CHECK(parameter_is(k, 2, 10, 2) && parameter_is(k, 3, 16, 8));
    CHECK(k->shared_bytes >= 1024);
}

static bool floats_are(const struct drv_variable_info *v, const float *expected, size_t count) {
    bool same = v->size == 4 * count && v->initial_size == v->size;
    for (size_t i = 0; i < count && same; i++) {
        float is;
        memcpy(&is, v->initial + 4 * i, sizeof is);
        same = is == expected[i];
    }
    return same;
}

static void check_variables(void) {
    static const float weights[] = {1, 2, 3};
    static const int counter = 7;
    CHECK(image.variable_count == 3);
    const struct drv_variable_info *v = variable("counter");
    CHECK(v->size == 4 && v->initial_size == 4 && !memcmp(v->initial, &counter, 4));
    CHECK(floats_are(variable("weights"), weights, 3));
    v = variable("table");
    CHECK(v->size == 64 && v->initial_size == 0);
}

/* GIVEN the same source as a cubin and as PTX, in a container or not THEN the same is found in each. */
static void the_compilers(void) {
    struct drv_bytes all[] = {cubin(), ptx(), plain(), by_lz4()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(read_bytes(all[i]) == DRV_OK);
        check_kernels();
        check_variables();
        CHECK(image.binary_version == 90 && image.bytes > 0);
        drv_image_free(&image);
    }
}

static void what_only_a_cubin_says(void) {
    CHECK(read_bytes(cubin()) == DRV_OK);
    CHECK(kernel("tiled")->registers > 0 && kernel("tiled")->constant_bytes >= 24);
    drv_image_free(&image);
    CHECK(read_bytes(wide()) == DRV_OK && image.binary_version == 75);
    const struct drv_kernel_info *k = kernel("wide_parameters");
    CHECK(k->param_count == 2 && k->param_bytes == 4112);
    CHECK(parameter_is(k, 0, 0, 4100) && parameter_is(k, 1, 4104, 8));
    drv_image_free(&image);
}

/* GIVEN an image without its size, as programs hand most of them over THEN it says itself where it
 * ends. */
static void without_a_size(void) {
    struct {
        uint32_t magic, version;
        const void *fatbin, *file;
    } wrapper = {0x466243b1, 1, plain().at, NULL};
    const void *all[] = {cubin().at, ptx().at, plain().at, by_lz4().at, &wrapper};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(drv_image_read(&image, all[i], SIZE_MAX) == DRV_OK);
        check_kernels();
        drv_image_free(&image);
    }
    CHECK(drv_image_read(&image, &wrapper, sizeof wrapper) == DRV_INVALID_IMAGE);
}

/* A container of two. */
static void of_two_the_plain_one(struct drv_bytes first, struct drv_bytes second) {
    enum { HEADER = 16 };
    uint64_t body = first.size + second.size - 2 * (uint64_t)HEADER;
    uint8_t *both = malloc(HEADER + body);
    CHECK(both != NULL);
    memcpy(both, first.at, first.size);
    memcpy(both + 8, &body, sizeof body);
    memcpy(both + first.size, second.at + HEADER, second.size - HEADER);
    CHECK(drv_image_read(&image, both, HEADER + body) == DRV_OK);
    check_kernels();
    drv_image_free(&image);
    free(both);
}

static void what_cannot_be_expanded(void) {
    CHECK(read_bytes(by_zstd()) == DRV_NOT_SUPPORTED);
    CHECK(image.kernel_count == 0);
    of_two_the_plain_one(by_zstd(), plain());
    of_two_the_plain_one(plain(), by_zstd());
    static const uint32_t nothing_inside[4] = {0xba55ed50, 0x00100001, 0, 0};
    CHECK(drv_image_read(&image, nothing_inside, sizeof nothing_inside) == DRV_NO_BINARY);
}

static void as_people_write_it(void) {
    CHECK(
        read_ptx("/* { */ // {\n.version 7.0 .target sm_80a, debug\n.address_size 64\n"
                 ".extern .shared .align 16 .b8 dynamic[];\n"
                 ".extern .global .u32 elsewhere;\n"
                 ".global .align 8 .v2 .f32 pairs[2][3];\n"
                 ".global .f32 real[3] = {1.5, -0.25, 0f40000000};\n"
                 ".const .s16 small[] ;\n"
                 ".func (.param .b32 r) helper(.param .b64 p) { { ret; } }\n"
                 ".visible .entry one(.param .u8 a, .param .align 16 .b8 b[20],\n"
                 "  .param .u64 .ptr .global .align 1 c, .param .v4 .f32 d, .param .bf16x2 e)\n"
                 ".reqntid 8, 4 .minnctapersm 1 { .reg .b32 %r<3>; { .shared .b32 s[8]; } ret; }\n"
                 ".entry two { ret; }\n") == DRV_OK);
    CHECK(image.kernel_count == 2 && image.variable_count == 2 && image.ptx_version == 80);
    const struct drv_kernel_info *k = kernel("one");
    CHECK(k->param_count == 5 && k->max_threads == 32 && k->shared_bytes == 32);
    CHECK(parameter_is(k, 0, 0, 1) && parameter_is(k, 1, 16, 20) && parameter_is(k, 2, 40, 8));
    CHECK(parameter_is(k, 3, 48, 16) && parameter_is(k, 4, 64, 4) && k->param_bytes == 68);
    CHECK(kernel("two")->param_count == 0 && kernel("two")->param_bytes == 0);
    CHECK(variable("pairs")->size == 48);
    static const float real[] = {1.5F, -0.25F, 2};
    CHECK(floats_are(variable("real"), real, 3));
    drv_image_free(&image);
}

static void broken_text(void) {
    static const char *const broken[] = {
        "",
        "int main() {}",
        ".target sm_80",
        ".version 7.0 .entry",
        ".version 7.0 .entry f(.param .u32",
        ".version 7.0 .entry f(.param .u31 a) { }",
        ".version 7.0 .entry f(.param .align 3 .b8 a[4]) { }",
        ".version 7.0 .entry f(.param .b8 a[99999]) { }",
        ".version 7.0 .entry f(.param .b8 a[9999999999999999999999]) { }",
        ".version 7.0 .entry f() { {",
        ".version 7.0 .global .b64 a[4611686018427387904][8];",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        enum drv_result result = read_ptx(broken[i]);
        CHECK(result == DRV_INVALID_PTX || result == DRV_INVALID_IMAGE);
        CHECK(image.kernel_count == 0 && image.kernels == NULL);
    }
}

static void lz4_blocks(void) {
    static const uint8_t overlapping[] = {0x26, 'a', 'b', 2, 0, 0x10, 'c'};
    uint8_t to[64];
    CHECK(drv_lz4_expand((struct drv_bytes){overlapping, 7}, to, 13));
    CHECK(!memcmp(to, "ababababababc", 13));
    CHECK(!drv_lz4_expand((struct drv_bytes){overlapping, 7}, to, 12));
    CHECK(!drv_lz4_expand((struct drv_bytes){overlapping, 7}, to, 14));
    CHECK(!drv_lz4_expand((struct drv_bytes){overlapping, 6}, to, 13));
    static const uint8_t from_before[] = {0x20, 'a', 'b', 3, 0, 0x10, 'c'};
    CHECK(!drv_lz4_expand((struct drv_bytes){from_before, 7}, to, 7));
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
    for (uint32_t i = 0; i < image.kernel_count; i++)
        CHECK(image.kernels[i].param_bytes <= UINT16_MAX);
    drv_image_free(&image);
    free(copy);
}

static void mutate(uint8_t *bytes, size_t size) {
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '{', '}', '"', '.'};
    for (uint32_t i = 1 + random_below(6); i; i--) {
        /* half of them in the headers at either end */
        size_t place = random_below(2)   ? random_below(size)
                       : random_below(2) ? random_below(size < 128 ? size : 128)
                                         : size - 1 - random_below(size < 2600 ? size : 2600);
        bytes[place] =
            random_below(2) ? telling[random_below(sizeof telling)] : (uint8_t)random_below(256);
    }
}

static void fuzz(struct drv_bytes from) {
    uint8_t *bytes = malloc(from.size);
    CHECK(bytes != NULL);
    for (int i = 0; i < rounds(6000); i++) {
        memcpy(bytes, from.at, from.size);
        mutate(bytes, from.size);
        read_copy(bytes, from.size);
    }
    for (size_t size = 0; size < from.size; size += (size_t)(from.size / rounds(1000) + 1))
        read_copy(from.at, size);
    free(bytes);
}

int main(void) {
    the_compilers();
    what_only_a_cubin_says();
    without_a_size();
    what_cannot_be_expanded();
    as_people_write_it();
    broken_text();
    lz4_blocks();
    struct drv_bytes all[] = {cubin(), wide(), ptx(), plain(), by_lz4(), by_zstd()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fuzz(all[i]);
    return 0;
}
