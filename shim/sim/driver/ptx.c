/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the declarations of PTX text: its kernels with their parameters, and its variables. Code inside
 * braces is skipped but for what it declares in shared memory. Nothing is compiled: text that an assembler
 * would refuse may pass.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

/* A token is a word (of letters, digits, and _ $ % .), a string, or one other character; empty at the
 * end. */
struct token {
    const char *at;
    size_t length;
};

struct lexer {
    const char *at, *end;
};

struct declaration {
    struct token name;
    uint32_t align;
    uint32_t element; /* bytes of one */
    uint64_t size;    /* of all; 0: not said */
    bool managed;
    bool real; /* its elements are floating-point numbers */
};

static bool is_word(char c) { return isalnum((unsigned char)c) || (c && strchr("_$%.", c)); }

/* Where the blank or comment at the beginning of the text ends; its beginning: there is none. */
static const char *blank_end(const char *at, const char *end) {
    size_t left = (size_t)(end - at);
    const char *found = at;
    if (left && isspace((unsigned char)*at))
        return at + 1;
    if (left > 1 && !memcmp(at, "//", 2)) {
        found = memchr(at, '\n', left);
        return found ? found : end;
    }
    if (left > 1 && !memcmp(at, "/*", 2)) {
        found = memmem(at + 2, left - 2, "*/", 2);
        return found ? found + 2 : end;
    }
    return found;
}

static void skip_blanks(struct lexer *l) {
    for (const char *end = blank_end(l->at, l->end); end != l->at; end = blank_end(l->at, l->end))
        l->at = end;
}

static struct token next(struct lexer *l) {
    skip_blanks(l);
    struct token t = {l->at, 0};
    if (l->at == l->end)
        return t;
    if (*l->at == '"') {
        const char *close = memchr(l->at + 1, '"', (size_t)(l->end - l->at - 1));
        l->at = close ? close + 1 : l->end;
    } else if (is_word(*l->at)) {
        while (l->at < l->end && is_word(*l->at))
            l->at++;
    } else {
        l->at++;
    }
    t.length = (size_t)(l->at - t.at);
    return t;
}

static struct token peek(struct lexer l) { return next(&l); }

static bool is(struct token t, const char *text) {
    return t.length == strlen(text) && !memcmp(t.at, text, t.length);
}

static bool accept(struct lexer *l, const char *text) {
    bool same = is(peek(*l), text);
    if (same)
        next(l);
    return same;
}

static bool starts_with_dot(struct token t) { return t.length && *t.at == '.'; }

static bool is_name(struct token t) {
    return t.length && *t.at != '.' && !isdigit((unsigned char)*t.at) && is_word(*t.at);
}

/* A whole number, as C writes it; a U may follow. */
static bool number(struct token t, uint64_t *value) {
    char text[32], *end;
    if (!t.length || t.length >= sizeof text || !isdigit((unsigned char)*t.at))
        return false;
    memcpy(text, t.at, t.length);
    text[t.length] = 0;
    errno = 0;
    uint64_t read = strtoull(text, &end, 0);
    if (errno || (*end && strcmp(end, "U") != 0))
        return false;
    *value = read;
    return true;
}

/* Like all that reads a declaration, this takes no token but what it looks for: a brace that somebody
 * counts is still there after a failure. */
static bool accept_number(struct lexer *l, uint64_t most, uint64_t *value) {
    bool fits = number(peek(*l), value) && *value <= most;
    if (fits)
        next(l);
    return fits;
}

/* The size of .u8, .bf16x2, .f64 and so on; 0: not a type. */
static uint32_t type_size(struct token t) {
    if (is(t, ".texref") || is(t, ".surfref") || is(t, ".samplerref"))
        return 8;
    size_t letters = 1;
    while (letters < t.length && isalpha((unsigned char)t.at[letters]))
        letters++;
    struct token kind = {t.at + 1, letters - 1}, digits = {t.at + letters, t.length - letters};
    bool pair = digits.length > 2 && !memcmp(digits.at + digits.length - 2, "x2", 2);
    digits.length -= pair ? 2 : 0;
    uint64_t bits;
    bool known = is(kind, "b") || is(kind, "u") || is(kind, "s") || is(kind, "f") || is(kind, "bf");
    if (!known || !number(digits, &bits) || (bits & (bits - 1)) || bits < 8 || bits > 128)
        return 0;
    return (uint32_t)bits / 8 * (pair ? 2 : 1);
}

static void skip_to_close(struct lexer *l, const char *open, const char *close) {
    size_t depth = 1;
    for (struct token t; depth && (t = next(l)).length;)
        depth += is(t, open) ? 1 : is(t, close) ? SIZE_MAX : 0;
}

static void read_attribute(struct lexer *l, struct declaration *d) {
    if (!accept(l, "("))
        return;
    d->managed = is(peek(*l), ".managed");
    skip_to_close(l, "(", ")");
}

static bool read_align(struct lexer *l, uint32_t *align) {
    uint64_t value;
    if (!accept_number(l, 1 << 16, &value) || !value || (value & (value - 1)))
        return false;
    *align = (uint32_t)value;
    return true;
}

/* A parameter that is a pointer may say where to, and how aligned that is. */
static bool read_pointed(struct lexer *l) {
    uint32_t align;
    struct token t = peek(*l);
    if (is(t, ".global") || is(t, ".const") || is(t, ".shared") || is(t, ".local"))
        next(l);
    return !accept(l, ".align") || read_align(l, &align);
}

/* One of the words between the state space and the name. */
static bool read_quality(struct lexer *l, struct declaration *d, uint32_t *lanes) {
    struct token t = next(l);
    if (is(t, ".align"))
        return read_align(l, &d->align);
    if (is(t, ".ptr"))
        return read_pointed(l);
    if (is(t, ".attribute"))
        read_attribute(l, d);
    else if (is(t, ".v2") || is(t, ".v4"))
        *lanes = (uint32_t)(t.at[2] - '0');
    else if ((d->element = type_size(t)))
        d->real = t.at[1] == 'f';
    else
        return false;
    return true;
}

static bool read_dimensions(struct lexer *l, struct declaration *d) {
    while (accept(l, "[")) {
        uint64_t count = 0;
        accept_number(l, UINT64_MAX, &count);
        if (__builtin_mul_overflow(d->size, count, &d->size) || !accept(l, "]"))
            return false;
    }
    return true;
}

/* What follows .param, .global, .const or .shared, up to before the separator or value. */
static bool read_declaration(struct lexer *l, struct declaration *d) {
    uint32_t lanes = 1;
    *d = (struct declaration){0};
    while (starts_with_dot(peek(*l)))
        if (!read_quality(l, d, &lanes))
            return false;
    d->size = (uint64_t)d->element * lanes;
    d->align = d->align ? d->align : (uint32_t)d->size;
    d->name = peek(*l);
    if (!is_name(d->name) || !d->element)
        return false;
    next(l);
    return read_dimensions(l, d);
}

static bool add_param(struct drv_kernel_info *kernel, const struct declaration *d) {
    uint64_t align = d->align ? d->align : 1;
    uint64_t offset = (kernel->param_bytes + align - 1) / align * align;
    if (!d->size || d->size > DRV_IMAGE_PARAMETER_BYTES ||
        offset + d->size > DRV_IMAGE_PARAMETER_BYTES)
        return false;
    kernel->param_bytes = (uint32_t)(offset + d->size);
    return drv_kernel_add_param(kernel,
                                (struct drv_parameter){(uint32_t)offset, (uint32_t)d->size});
}

static bool read_params(struct lexer *l, struct drv_kernel_info *kernel) {
    struct declaration d;
    if (!accept(l, "(") || accept(l, ")"))
        return true;
    do
        if (!accept(l, ".param") || !read_declaration(l, &d) || !add_param(kernel, &d))
            return false;
    while (accept(l, ","));
    return accept(l, ")");
}

static bool read_block_size(struct lexer *l, uint32_t *threads) {
    uint64_t product = 1, count;
    do {
        if (!accept_number(l, UINT32_MAX, &count) ||
            __builtin_mul_overflow(product, count, &product))
            return false;
    } while (accept(l, ","));
    *threads = product > UINT32_MAX ? 0 : (uint32_t)product;
    return true;
}

static bool read_body(struct lexer *l, struct drv_kernel_info *kernel) {
    size_t depth = 1;
    struct declaration d;
    while (depth) {
        struct token t = next(l);
        if (!t.length)
            return false;
        depth += is(t, "{") ? 1 : is(t, "}") ? SIZE_MAX : 0;
        if (is(t, ".shared") && read_declaration(l, &d) && d.size < UINT32_MAX)
            kernel->shared_bytes += (uint32_t)d.size;
    }
    return true;
}

/* What follows .entry. */
static bool read_entry(struct lexer *l, struct drv_image *image) {
    struct token name = next(l);
    if (!is_name(name))
        return false;
    struct drv_kernel_info *kernel = drv_image_add_kernel(image, name.at, name.length);
    if (!kernel || !read_params(l, kernel))
        return false;
    for (struct token t; (t = next(l)).length && !is(t, ";");) {
        if (is(t, "{"))
            return read_body(l, kernel);
        bool limits = is(t, ".maxntid") || is(t, ".reqntid");
        if (limits && !read_block_size(l, &kernel->max_threads))
            return false;
    }
    return true;
}

/* An element as bits: 0f and 0d are numbers given by their bits. Names of other variables stay zeros. */
static uint64_t element_bits(struct token t, const struct declaration *d, bool negative) {
    char text[64], *end;
    size_t length = t.length < sizeof text - 1 ? t.length : sizeof text - 1;
    memcpy(text, t.at, length);
    text[length] = 0;
    if (length > 2 && *text == '0' && strchr("fFdD", text[1]) && d->real)
        return strtoull(text + 2, NULL, 16);
    uint64_t bits = 0;
    if (!d->real)
        return number(t, &bits) && negative ? -bits : bits;
    double real = negative ? -strtod(text, &end) : strtod(text, &end);
    float narrow = (float)real;
    memcpy(&bits, d->element == 4 ? (void *)&narrow : (void *)&real, d->element == 4 ? 4 : 8);
    return bits;
}

/* Room for all that the text up to the end of the declaration can say. */
static bool make_room(const struct lexer *l, const struct declaration *d,
                      struct drv_variable_info *v, size_t *room) {
    const char *end = memchr(l->at, ';', (size_t)(l->end - l->at));
    *room = end ? (size_t)(end - l->at) * 8 : 0;
    *room = *room < d->size ? *room : (size_t)d->size;
    v->initial = malloc(*room + 1);
    return v->initial != NULL;
}

static bool read_initial(struct lexer *l, const struct declaration *d,
                         struct drv_variable_info *v) {
    size_t room;
    bool negative = false;
    if (!make_room(l, d, v, &room))
        return false;
    for (struct token t = peek(*l); t.length && !is(t, ";"); t = peek(*l)) {
        next(l);
        if (is_word(*t.at) && d->element <= 8 && room - v->initial_size >= d->element) {
            uint64_t bits = element_bits(t, d, negative);
            memcpy(v->initial + v->initial_size, &bits, d->element);
            v->initial_size += d->element;
        }
        negative = is(t, "-");
    }
    return true;
}

/* What follows .global or .const, outside of braces. One of another image has no place in this. */
static bool read_variable(struct lexer *l, struct drv_image *image, bool external) {
    struct declaration d;
    if (!read_declaration(l, &d))
        return false;
    if (external || !d.size)
        return true;
    struct drv_variable_info *v = drv_image_add_variable(image, d.name.at, d.name.length);
    if (!v)
        return false;
    v->size = d.size;
    v->managed = d.managed;
    return !accept(l, "=") || read_initial(l, &d, v);
}

/* sm_90a: 90. */
static uint32_t read_target(struct lexer *l) {
    struct token t = next(l);
    if (t.length < 4 || memcmp(t.at, "sm_", 3) != 0)
        return 0;
    uint32_t target = 0;
    for (size_t i = 3; i < t.length && i < 6 && isdigit((unsigned char)t.at[i]); i++)
        target = target * 10 + (uint32_t)(t.at[i] - '0');
    return target;
}

static bool read_module(struct lexer *l, struct drv_image *image) {
    bool external = false, sound = true;
    for (struct token t; sound && (t = next(l)).length;) {
        if (is(t, ".entry"))
            sound = read_entry(l, image);
        else if (is(t, ".global") || is(t, ".const"))
            sound = read_variable(l, image, external);
        else if (is(t, "{"))
            skip_to_close(l, "{", "}");
        else if (is(t, ".target"))
            image->ptx_version = image->binary_version = read_target(l);
        external = is(t, ".extern");
    }
    return sound;
}

bool drv_is_ptx(struct drv_bytes bytes) {
    const char *text = (const char *)bytes.at;
    return is(peek((struct lexer){text, text + bytes.size}), ".version");
}

enum drv_result drv_ptx_read(struct drv_image *image, struct drv_bytes bytes) {
    const char *text = (const char *)bytes.at;
    struct lexer lexer = {text, text + bytes.size};
    image->bytes = bytes.size;
    errno = 0;
    if (drv_is_ptx(bytes) && read_module(&lexer, image))
        return DRV_OK;
    return errno == ENOMEM ? DRV_OUT_OF_MEMORY : DRV_INVALID_PTX;
}
