/* SPDX-License-Identifier: Apache-2.0
 *
 * What a compiled program tells of itself before it begins: its code, and the addresses that it will call
 * kernels and variables by. Nothing is read before something of it is used.
 */
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

/* The code of one file of the program's; what it is registered with is the address of this. */
struct code {
    const void *image;
    struct drv_library *library; /* NULL: not read yet */
};

struct symbol {
    const void *address; /* the key */
    struct code *code;
    const char *name;          /* on the device */
    size_t size;               /* of a variable; 0: a kernel */
    struct drv_kernel *kernel; /* NULL: not looked for yet */
};

/* A variable that the host may use too: from the beginning, when there may be no device yet. */
struct managed {
    struct managed *next;
    void *memory;
    size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* tsearch's. Symbols are never freed: only a library that is closed takes any back. */
static void *symbols;
static struct managed *unknown; /* those that the driver has not been told of */

static int by_address(const void *a, const void *b) {
    const void *x = ((const struct symbol *)a)->address, *y = ((const struct symbol *)b)->address;
    return ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

static void add(struct symbol symbol) {
    struct symbol *s = malloc(sizeof *s);
    if (!s)
        return;
    *s = symbol;
    pthread_mutex_lock(&lock);
    struct symbol **found = (struct symbol **)tsearch(s, &symbols, by_address);
    if (found && *found != s) { /* another library was there before */
        **found = symbol;
        free(s);
    }
    pthread_mutex_unlock(&lock);
}

void **__hipRegisterFatBinary(const void *data) {
    struct code *code = calloc(1, sizeof *code);
    if (code)
        code->image = data;
    return (void **)code;
}

void __hipRegisterFunction(void **modules, const void *hostFunction, char *deviceFunction,
                           const char *deviceName, unsigned int threadLimit, uint3 *tid, uint3 *bid,
                           dim3 *blockDim, dim3 *gridDim, int *wSize) {
    (void)deviceFunction, (void)threadLimit, (void)tid, (void)bid, (void)blockDim, (void)gridDim;
    (void)wSize;
    add((struct symbol){hostFunction, (struct code *)modules, deviceName, 0, NULL});
}

void __hipRegisterVar(void **modules, void *var, char *hostVar, char *deviceVar, int ext,
                      size_t size, int constant, int global) {
    (void)hostVar, (void)ext, (void)constant, (void)global;
    add((struct symbol){var, (struct code *)modules, deviceVar, size ? size : 1, NULL});
}

void __hipRegisterManagedVar(void *hipModule, void **pointer, void *init_value, const char *name,
                             size_t size, unsigned int align) {
    enum { PAGE = 4096 };
    (void)hipModule, (void)name;
    struct managed *m = calloc(1, sizeof *m);
    if (!m || posix_memalign(&m->memory, align > PAGE ? align : PAGE, size)) {
        free(m);
        return;
    }
    m->size = size;
    memcpy(m->memory, init_value, size);
    *pointer = m->memory;
    pthread_mutex_lock(&lock);
    m->next = unknown;
    unknown = m;
    pthread_mutex_unlock(&lock);
}

static void tell_of_managed(struct drv_context *context) {
    pthread_mutex_lock(&lock);
    while (unknown) {
        struct managed *m = unknown;
        unknown = m->next;
        drv_memory_register(context, (uintptr_t)m->memory, m->size, 0);
        free(m);
    }
    pthread_mutex_unlock(&lock);
}

/* Its kernels may still be launched by who has their handles: what was loaded stays. */
void __hipUnregisterFatBinary(void **modules) {
    struct code *code = (struct code *)modules;
    pthread_mutex_lock(&lock);
    if (code)
        code->image = NULL;
    pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static enum drv_result load(struct code *code) {
    struct drv_code *read;
    if (!code || !code->image)
        return DRV_NOT_FOUND;
    if (code->library)
        return DRV_OK;
    enum drv_result r = drv_code_read(code->image, SIZE_MAX, &read);
    return r ? r : drv_library_load(read, &code->library);
}

/* Under the lock. */
static enum drv_result resolve(struct symbol *s) {
    enum drv_result r = load(s->code);
    if (!r && !s->size && !s->kernel)
        r = drv_library_find_kernel(s->code->library, s->name, &s->kernel);
    return r;
}

/* DRV_NOT_FOUND: no such symbol. */
static enum drv_result find(const void *address, struct symbol *symbol) {
    struct symbol key = {.address = address};
    pthread_mutex_lock(&lock);
    struct symbol **found = (struct symbol **)tfind(&key, &symbols, by_address);
    enum drv_result r = found ? resolve(*found) : DRV_NOT_FOUND;
    if (!r)
        *symbol = **found;
    pthread_mutex_unlock(&lock);
    return r;
}

hipError_t hip_kernel(const void *symbol, struct drv_function **function) {
    struct symbol s;
    hipError_t ready = hip_ready();
    if (ready)
        return ready;
    *function = (struct drv_function *)symbol;
    if (drv_handle_is(DRV_FUNCTION, symbol) || drv_handle_is(DRV_KERNEL, symbol))
        return hipSuccess;
    enum drv_result r = find(symbol, &s);
    if (!r && s.size)
        r = DRV_NOT_FOUND;
    if (r)
        return r == DRV_NOT_FOUND ? hip_error(HIP_INVALID_DEVICE_FUNCTION) : hip_result(r);
    *function = &s.kernel->is;
    return hipSuccess;
}

hipError_t hip_function(const void *symbol, struct drv_context *context,
                        const struct drv_function **function) {
    struct drv_function *kernel;
    tell_of_managed(context);
    hipError_t r = hip_kernel(symbol, &kernel);
    return r ? r : hip_result(drv_function_of(context, kernel, function));
}

hipError_t hipGetFuncBySymbol(hipFunction_t *functionPtr, const void *symbolPtr) {
    struct drv_context *context;
    const struct drv_function *function;
    hipError_t r = hip_enter(&context);
    if (r || !functionPtr)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_function(symbolPtr, context, &function);
    if (!r)
        *functionPtr = (hipFunction_t)(void *)function;
    return r;
}

/* On the current device. */
static hipError_t find_variable(const void *symbol, void **address, size_t *bytes) {
    struct drv_context *context;
    struct drv_module *module;
    struct symbol s;
    hipError_t r = hip_enter(&context);
    if (r)
        return r;
    enum drv_result found = find(symbol, &s);
    if (!found && !s.size)
        found = DRV_NOT_FOUND;
    if (!found)
        found = drv_library_module(s.code->library, context, &module);
    if (found)
        return found == DRV_NOT_FOUND ? hip_error(HIP_INVALID_SYMBOL) : hip_result(found);
    return hip_give_variable(module, s.name, address, bytes);
}

hipError_t hipGetSymbolAddress(void **devPtr, const void *symbol) {
    return devPtr ? find_variable(symbol, devPtr, NULL) : hip_error(HIP_INVALID_VALUE);
}

hipError_t hipGetSymbolSize(size_t *size, const void *symbol) {
    return size ? find_variable(symbol, NULL, size) : hip_error(HIP_INVALID_VALUE);
}

/* Where a copy's bytes are in a variable. */
static hipError_t place(const void *symbol, size_t bytes, size_t offset, char **at) {
    void *address = NULL;
    size_t size = 0;
    *at = NULL;
    hipError_t r = find_variable(symbol, &address, &size);
    if (r || offset > size || bytes > size - offset)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *at = (char *)address + offset;
    return r;
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *src, size_t sizeBytes, size_t offset,
                             hipMemcpyKind kind) {
    char *at;
    hipError_t r = place(symbol, sizeBytes, offset, &at);
    return r ? r : hipMemcpy(at, src, sizeBytes, kind);
}

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *src, size_t sizeBytes,
                                  size_t offset, hipMemcpyKind kind, hipStream_t stream) {
    char *at;
    hipError_t r = place(symbol, sizeBytes, offset, &at);
    return r ? r : hipMemcpyAsync(at, src, sizeBytes, kind, stream);
}

hipError_t hipMemcpyFromSymbol(void *dst, const void *symbol, size_t sizeBytes, size_t offset,
                               hipMemcpyKind kind) {
    char *at;
    hipError_t r = place(symbol, sizeBytes, offset, &at);
    return r ? r : hipMemcpy(dst, at, sizeBytes, kind);
}

hipError_t hipMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t sizeBytes, size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream) {
    char *at;
    hipError_t r = place(symbol, sizeBytes, offset, &at);
    return r ? r : hipMemcpyAsync(dst, at, sizeBytes, kind, stream);
}
