/* SPDX-License-Identifier: Apache-2.0
 *
 * A sibling that is busy until its stdin ends: bursts of kernels through each ICD loader it is told
 * of. `linked` is the one this program links (compiled with -DLINKED); a path is opened, and its functions looked up.
 * Prints [start, end] of each kernel, by the device's clock, and checks the sums it computed.
 *
 *     loader_program LOADER...
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
    X(clGetPlatformIDs)                                                                            \
    X(clGetDeviceIDs)                                                                              \
    X(clCreateContext)                                                                             \
    X(clCreateCommandQueue)                                                                        \
    X(clCreateBuffer)                                                                              \
    X(clCreateProgramWithSource)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clCreateKernel)                                                                              \
    X(clSetKernelArg)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)                                                                         \
    X(clFinish)                                                                                    \
    X(clGetEventProfilingInfo)                                                                     \
    X(clReleaseEvent)

struct functions {
#define X(name) __typeof__(&(name)) name;
    FUNCTIONS(X)
#undef X
};

struct device {
    struct functions f;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem data;
    int rounds;
};

enum { SIZE = 512, BURST = 10 };

static const char *source = "__kernel void add(__global float *a) {"
                            "    int i = get_global_id(0); float x = 0.0f;"
                            "    for (int k = 0; k < 2000; k++) x = x * 0.5f + 0.5f;"
                            "    a[i] += x; }";

static void check(int fine, const char *what) {
    if (fine)
        return;
    fprintf(stderr, "loader_program: %s failed\n", what);
    exit(1);
}

static struct functions find_functions(const char *loader) {
    struct functions f;
#ifdef LINKED
    if (!strcmp(loader, "linked")) {
#define X(name) f.name = name;
        FUNCTIONS(X)
#undef X
        return f;
    }
#endif
    void *handle = dlopen(loader, RTLD_NOW | RTLD_LOCAL);
    check(handle != NULL, loader);
#define X(name)                                                                                    \
    f.name = (__typeof__(f.name))dlsym(handle, #name);                                             \
    check(f.name != NULL, #name);
    FUNCTIONS(X)
#undef X
    return f;
}

static void open_device(struct device *d, const char *loader) {
    cl_platform_id platform;
    cl_device_id id;
    d->f = find_functions(loader);
    check(d->f.clGetPlatformIDs(1, &platform, NULL) == 0, "clGetPlatformIDs");
    check(d->f.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) == 0, "clGetDeviceIDs");
    cl_context context = d->f.clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
    check(context != NULL, "clCreateContext");
    d->queue = d->f.clCreateCommandQueue(context, id, CL_QUEUE_PROFILING_ENABLE, NULL);
    float zeros[SIZE] = {0};
    d->data = d->f.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zeros,
                                  zeros, NULL);
    cl_program program = d->f.clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    check(d->f.clBuildProgram(program, 1, &id, "", NULL, NULL) == 0, "clBuildProgram");
    d->kernel = d->f.clCreateKernel(program, "add", NULL);
    check(d->f.clSetKernelArg(d->kernel, 0, sizeof(cl_mem), &d->data) == 0, "clSetKernelArg");
}

static void burst(struct device *d) {
    static const char *separator = "";
    cl_event events[BURST];
    size_t size = SIZE;
    for (int i = 0; i < BURST; i++)
        check(d->f.clEnqueueNDRangeKernel(d->queue, d->kernel, 1, NULL, &size, NULL, 0, NULL,
                                          &events[i]) == 0,
              "clEnqueueNDRangeKernel");
    d->f.clFinish(d->queue);
    d->rounds += BURST;
    for (int i = 0; i < BURST; i++) {
        cl_ulong t[2];
        d->f.clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, 8, &t[0], NULL);
        d->f.clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, 8, &t[1], NULL);
        d->f.clReleaseEvent(events[i]);
        printf("%s[%llu, %llu]", separator, (unsigned long long)t[0], (unsigned long long)t[1]);
        separator = ", ";
    }
}

static void verify(struct device *d) {
    float got[SIZE];
    check(d->f.clEnqueueReadBuffer(d->queue, d->data, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL) ==
              0,
          "clEnqueueReadBuffer");
    for (int i = 0; i < SIZE; i++) {
        float off = got[i] - (float)d->rounds;
        check(off > -0.5f && off < 0.5f, "the sum");
    }
}

int main(int argc, char **argv) {
    struct device devices[4];
    int count = argc - 1;
    check(argc >= 2 && count <= 4, "the command line");
    for (int i = 0; i < count; i++) {
        memset(&devices[i], 0, sizeof devices[i]);
        open_device(&devices[i], argv[1 + i]);
    }
    printf("busy\n");
    fflush(stdout);
    printf("[");
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (!poll(&input, 1, 0))
        for (int i = 0; i < count; i++)
            burst(&devices[i]);
    printf("]\n");
    for (int i = 0; i < count; i++)
        verify(&devices[i]);
    return 0;
}
