/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks regions with krex.h around commands for an OpenCL device. C, and C++ too.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <krex.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

/* Fills the buffer with a pattern, `times` times, and says what is in it in the end. */
static void work(cl_command_queue queue, cl_mem buffer, int times) {
    cl_int pattern, found = 0;
    for (pattern = 1; pattern <= times; pattern++)
        check(clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, 4096, 0, NULL, NULL),
              "clEnqueueFillBuffer");
    check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4092, sizeof found, &found, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    printf("%d\n", found);
    fflush(stdout);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "clCreateBuffer");

    work(queue, buffer, 1);
    krex_begin("first");
    work(queue, buffer, 5);
    krex_end();
    krex_begin("second");
    krex_begin("inside it");
    work(queue, buffer, 3);
    krex_end();
    work(queue, buffer, 4);
    krex_end();
    krex_end(); /* one too many does nothing */
    work(queue, buffer, 2);
    return 0;
}
