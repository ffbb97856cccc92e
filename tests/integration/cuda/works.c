/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that uses the driver: with a context of its own, or the one that is current.
 */
#include <stddef.h>

int cuInit(unsigned);
int cuCtxGetCurrent(void **context);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemsetD8Async(unsigned long long address, unsigned char value, size_t size, void *stream);

enum { SIZE = 1 << 20 };
static unsigned long long memory;

int works_begin(void) {
    void *context = NULL;
    int result = cuInit(0);
    if (!result && (cuCtxGetCurrent(&context) || !context))
        result = cuCtxCreate_v2(&context, 0, 0);
    return result ? result : cuMemAlloc_v2(&memory, SIZE);
}

int works_do(void) {
    int result = cuMemsetD8Async(memory, 1, SIZE, NULL);
    return result ? result : cuCtxSynchronize();
}
