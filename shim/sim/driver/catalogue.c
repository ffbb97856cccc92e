/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that compute. A function is one of these if its name contains the name here (so that what
 * compilers put around a name does not matter), and its parameters have these sizes:
 *
 *   name                 parameters                     what it does, in row-major order
 *   krex_copy_f32        to, from, n                    to[i] = from[i]
 *   krex_fill_f32        to, value, n                   to[i] = value
 *   krex_scale_f32       x, a, n                        x[i] *= a
 *   krex_axpy_f32        n, a, x, y  or  a, x, y, n     y[i] += a * x[i]
 *                        a, x, y, to, n                 to[i] = a * x[i] + y[i]
 *   krex_add_f32         x, y, to, n                    to[i] = x[i] + y[i]
 *   krex_sum_f32         from, to, n                    to[0] = from[0] + ..., added in double precision
 *   krex_transpose_f32   to, from, rows, columns        to[c][r] = from[r][c]
 *   krex_gemm_f32        a, b, c, m, n, k               c[m][n] = a[m][k] b[k][n]
 *   krex_spin            ns (8 bytes)                   takes that long, whatever the rules say
 *   krex_wait_flag       flag (address of 4 bytes)      ends when the flag is not 0
 *
 * An address has 8 bytes, a number of elements 4 or 8, a value 4. Up to two more parameters of 8 bytes may
 * follow, as Triton adds them. Where numba passes arrays, each of the addresses is seven parameters, a
 * value may have 8 bytes (double), and n may be missing.
 *
 * All elements are computed, whatever the grid: how many are one thread's is not known. It happens when
 * the device says that the kernel has ended, and takes no device time of its own.
 */
#include <string.h>

#include "module.h"

enum {
    TRAILING = 2,
    ARRAY = 7, /* numba's: two objects, elements, bytes of one, address, shape, stride */
    ARRAY_ELEMENTS = 2,
    ARRAY_ADDRESS = 4,
};

/* p: an address, n: a number of elements, f: a value. In the order of the parameters. */
struct arguments {
    uint64_t address[3];
    uint64_t count[3];
    float value;
    int addresses, counts;
    uint64_t elements; /* of the first array */
};

struct row {
    const char *name;
    const char *layout;
    drv_compute compute;
};

static const unsigned char *parameter(const struct drv_launch *l, uint32_t i) {
    return l->parameters + l->function->parameter[i].offset;
}

static uint64_t get_address(const struct drv_launch *l, uint32_t i) {
    uint64_t address;
    memcpy(&address, parameter(l, i), sizeof address);
    return address;
}

/* A negative one is none. */
static uint64_t get_count(const struct drv_launch *l, uint32_t i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (l->function->parameter[i].size == sizeof wide)
        memcpy(&wide, parameter(l, i), sizeof wide);
    else
        memcpy(&narrow, parameter(l, i), sizeof narrow);
    return wide > 0 ? (uint64_t)wide : narrow > 0 ? (uint64_t)narrow : 0;
}

static float get_value(const struct drv_launch *l, uint32_t i) {
    float narrow;
    double wide;
    if (l->function->parameter[i].size == sizeof wide) {
        memcpy(&wide, parameter(l, i), sizeof wide);
        return (float)wide;
    }
    memcpy(&narrow, parameter(l, i), sizeof narrow);
    return narrow;
}

/* The ways to read a layout: with addresses, with arrays, and with arrays but without numbers. */
struct reading {
    uint32_t step; /* parameters for an address */
    bool counts;
};
static const struct reading readings[] = {{1, true}, {ARRAY, true}, {ARRAY, false}};

static bool is_size(char letter, uint32_t size, struct reading how) {
    bool wide = letter != 'f' || how.step == ARRAY;
    return size == 8 ? wide : size == 4 && letter != 'p';
}

static bool fits(const struct drv_function *f, const char *layout, struct reading how) {
    uint32_t i = 0;
    for (; *layout; layout++) {
        if (*layout == 'n' && !how.counts)
            continue;
        for (uint32_t step = *layout == 'p' ? how.step : 1; step; step--, i++)
            if (i >= f->parameters || !is_size(*layout, f->parameter[i].size, how))
                return false;
    }
    uint32_t trailing = f->parameters - i;
    for (; i < f->parameters; i++)
        if (f->parameter[i].size != 8)
            return false;
    return trailing <= TRAILING;
}

static void read_arguments(const struct drv_launch *l, const char *layout, struct reading how,
                           struct arguments *a) {
    uint32_t i = 0;
    *a = (struct arguments){0};
    for (; *layout; layout++) {
        if (*layout == 'f')
            a->value = get_value(l, i++);
        if (*layout == 'n' && how.counts)
            a->count[a->counts++] = get_count(l, i++);
        if (*layout != 'p')
            continue;
        if (how.step == ARRAY && !a->addresses)
            a->elements = get_count(l, i + ARRAY_ELEMENTS);
        a->address[a->addresses++] = get_address(l, i + (how.step == ARRAY ? ARRAY_ADDRESS : 0));
        i += how.step;
    }
    if (!how.counts)
        a->count[0] = a->elements;
}

/* Elements of memory; NULL: an illegal address. */
static float *elements(uint64_t address, uint64_t count) {
    bool sound = address % sizeof(float) == 0 && count <= UINT64_MAX / sizeof(float);
    return sound ? drv_memory_at(address, count * sizeof(float)) : NULL;
}

/* A kernel's vectors, each of n elements; those that it has no address of are NULL. */
struct vectors {
    float *x, *y, *z;
};

static bool get_vectors(const struct arguments *a, struct vectors *v) {
    float *at[3] = {NULL};
    for (int i = 0; i < a->addresses; i++)
        if (!(at[i] = elements(a->address[i], a->count[0])))
            return false;
    *v = (struct vectors){at[0], at[1], at[2]};
    return true;
}

static const struct row *find(const struct drv_function *function, struct reading *how);

/* What every kernel begins with; false: there is nothing to do. */
static bool begin(const struct drv_launch *l, struct arguments *a) {
    struct reading how;
    const struct row *row = find(l->function, &how);
    if (row)
        read_arguments(l, row->layout, how, a);
    return row != NULL && a->count[0];
}

static enum drv_result copy(const struct drv_launch *l) {
    struct arguments a;
    struct vectors v;
    if (!begin(l, &a))
        return DRV_OK;
    if (!get_vectors(&a, &v))
        return DRV_ILLEGAL_ADDRESS;
    memmove(v.x, v.y, a.count[0] * sizeof *v.x);
    return DRV_OK;
}

static enum drv_result fill(const struct drv_launch *l) {
    struct arguments a;
    struct vectors v;
    if (!begin(l, &a))
        return DRV_OK;
    if (!get_vectors(&a, &v))
        return DRV_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < a.count[0]; i++)
        v.x[i] = a.value;
    return DRV_OK;
}

static enum drv_result scale(const struct drv_launch *l) {
    struct arguments a;
    struct vectors v;
    if (!begin(l, &a))
        return DRV_OK;
    if (!get_vectors(&a, &v))
        return DRV_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < a.count[0]; i++)
        v.x[i] *= a.value;
    return DRV_OK;
}

/* With two vectors the result replaces the second. */
static enum drv_result axpy(const struct drv_launch *l) {
    struct arguments a;
    struct vectors v;
    if (!begin(l, &a))
        return DRV_OK;
    if (!get_vectors(&a, &v))
        return DRV_ILLEGAL_ADDRESS;
    float *to = v.z ? v.z : v.y;
    for (uint64_t i = 0; i < a.count[0]; i++)
        to[i] = a.value * v.x[i] + v.y[i];
    return DRV_OK;
}

static enum drv_result add(const struct drv_launch *l) {
    struct arguments a;
    struct vectors v;
    if (!begin(l, &a))
        return DRV_OK;
    if (!get_vectors(&a, &v) || !v.x || !v.y || !v.z)
        return DRV_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < a.count[0]; i++)
        v.z[i] = v.x[i] + v.y[i];
    return DRV_OK;
}

static enum drv_result sum(const struct drv_launch *l) {
    struct arguments a;
    double total = 0;
    if (!begin(l, &a))
        return DRV_OK;
    const float *from = elements(a.address[0], a.count[0]);
    float *to = elements(a.address[1], 1);
    if (!from || !to)
        return DRV_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < a.count[0]; i++)
        total += from[i];
    *to = (float)total;
    return DRV_OK;
}

/* A matrix; NULL: it is not all where it may be. */
static float *matrix(uint64_t address, uint64_t rows, uint64_t columns) {
    uint64_t count;
    return __builtin_mul_overflow(rows, columns, &count) ? NULL : elements(address, count);
}

static enum drv_result transpose(const struct drv_launch *l) {
    struct arguments a;
    if (!begin(l, &a) || !a.count[1])
        return DRV_OK;
    uint64_t rows = a.count[0], columns = a.count[1];
    float *to = matrix(a.address[0], columns, rows);
    const float *from = matrix(a.address[1], rows, columns);
    if (!to || !from)
        return DRV_ILLEGAL_ADDRESS;
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
    return DRV_OK;
}

static void multiply(const float *a, const float *b, float *c, const uint64_t *size) {
    uint64_t n = size[1], k = size[2];
    for (uint64_t row = 0; row < size[0]; row++) {
        memset(c + row * n, 0, n * sizeof *c);
        for (uint64_t inner = 0; inner < k; inner++)
            for (uint64_t column = 0; column < n; column++)
                c[row * n + column] += a[row * k + inner] * b[inner * n + column];
    }
}

static enum drv_result gemm(const struct drv_launch *l) {
    struct arguments args;
    if (!begin(l, &args) || !args.count[1])
        return DRV_OK;
    const uint64_t *size = args.count;
    const float *a = matrix(args.address[0], size[0], size[2]);
    const float *b = matrix(args.address[1], size[2], size[1]);
    float *c = matrix(args.address[2], size[0], size[1]);
    if (!a || !b || !c)
        return DRV_ILLEGAL_ADDRESS;
    multiply(a, b, c, size);
    return DRV_OK;
}

/* Of two that fit, the first is meant. */
static const struct row rows[] = {
    {"krex_copy_f32", "ppn", copy},
    {"krex_fill_f32", "pfn", fill},
    {"krex_scale_f32", "pfn", scale},
    {"krex_axpy_f32", "nfpp", axpy},
    {"krex_axpy_f32", "fpppn", axpy},
    {"krex_axpy_f32", "fppn", axpy},
    {"krex_add_f32", "pppn", add},
    {"krex_sum_f32", "ppn", sum},
    {"krex_transpose_f32", "ppnn", transpose},
    {"krex_gemm_f32", "pppnnn", gemm},
};

static bool is_named(const struct drv_function *function, const char *name) {
    return strstr(function->name, name) != NULL;
}

static const struct row *find(const struct drv_function *function, struct reading *how) {
    for (size_t r = 0; r < sizeof readings / sizeof *readings; r++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            *how = readings[r];
            if (is_named(function, rows[i].name) && fits(function, rows[i].layout, *how))
                return &rows[i];
        }
    return NULL;
}

void drv_catalogue_look_up(struct drv_function *function) {
    struct reading how;
    const struct row *row = find(function, &how);
    bool one = function->parameters == 1 && function->parameter[0].size == 8;
    function->compute = row ? row->compute : NULL;
    function->special = one && is_named(function, "krex_spin")        ? DRV_SPIN
                        : one && is_named(function, "krex_wait_flag") ? DRV_WAIT_FLAG
                                                                      : DRV_ORDINARY;
}
