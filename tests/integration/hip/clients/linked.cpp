// SPDX-License-Identifier: Apache-2.0
//
// A program with the runtime among its libraries, compiled with the vendor's header: what hipcc makes of
// a file with a kernel and <<<>>> is written out, since it needs no compiler for devices then.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t result = call;                                                                  \
        if (result != hipSuccess) {                                                                \
            std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(result));                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

extern "C" {
void **__hipRegisterFatBinary(const void *data);
void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name,
                           unsigned int limit, void *tid, void *bid, void *block, void *grid,
                           int *size);
void __hipRegisterVar(void **modules, void *var, char *host, char *device, int ext, size_t size,
                      int constant, int global);
void __hipRegisterManagedVar(void *module, void **pointer, void *value, const char *name,
                             size_t size, unsigned int align);
void __hipUnregisterFatBinary(void **modules);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream);
}

struct Wrapper {
    uint32_t magic, version;
    const void *binary, *unused;
};

// As clang's bundler writes it: an entry for the host, which is empty, and one for a device.
static std::vector<char> bundle(const std::string &code) {
    const std::string host = "host-x86_64-unknown-linux-gnu-",
                      device = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    std::vector<char> to(4096);
    size_t at = 0;
    auto put = [&](const void *from, size_t bytes) {
        std::memcpy(to.data() + at, from, bytes);
        at += bytes;
    };
    auto number = [&](uint64_t value) { put(&value, sizeof value); };
    put("__CLANG_OFFLOAD_BUNDLE__", 24);
    number(2);
    number(4096), number(0), number(host.size()), put(host.data(), host.size());
    number(4096), number(code.size()), number(device.size()), put(device.data(), device.size());
    to.insert(to.end(), code.begin(), code.end());
    return to;
}

static float *shared_sum; // where the variable is that host and device share
static int counter;       // its address is what the device's variable is known by

static void axpy(int n, float a, const float *x, float *y) {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    void *arguments[] = {&n, &a, &x, &y};
    CHECK(__hipPopCallConfiguration(&grid, &block, &shared, &stream));
    CHECK(hipLaunchKernel(reinterpret_cast<const void *>(axpy), grid, block, arguments, shared,
                          stream));
}

static bool computes(hipStream_t stream) {
    const int n = 1000;
    std::vector<float> x(n), y(n, 1);
    float *on_device[2];
    for (int i = 0; i < n; i++)
        x[i] = static_cast<float>(i);
    for (float *&at : on_device)
        CHECK(hipMalloc(reinterpret_cast<void **>(&at), n * sizeof(float)));
    CHECK(hipMemcpy(on_device[0], x.data(), n * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(on_device[1], y.data(), n * sizeof(float), hipMemcpyHostToDevice));
    CHECK(__hipPushCallConfiguration(dim3{4, 1, 1}, dim3{256, 1, 1}, 0, stream));
    axpy(n, 2, on_device[0], on_device[1]);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipMemcpy(y.data(), on_device[1], n * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (y[i] != 2 * x[i] + 1)
            return false;
    return true;
}

// A kernel reads and writes what the host has written.
static bool shares(hipStream_t stream) {
    float *on_device = nullptr;
    const float two = 2;
    CHECK(hipMalloc(reinterpret_cast<void **>(&on_device), sizeof two));
    CHECK(hipMemcpy(on_device, &two, sizeof two, hipMemcpyHostToDevice));
    *shared_sum += 1;
    CHECK(__hipPushCallConfiguration(dim3{1, 1, 1}, dim3{64, 1, 1}, 0, stream));
    axpy(1, 3, on_device, shared_sum);
    CHECK(hipStreamSynchronize(stream));
    return *shared_sum == 3 * two + 41;
}

static float spins(const std::string &code, hipStream_t stream) {
    hipModule_t module;
    hipFunction_t spin;
    hipEvent_t before, after;
    int64_t ns = 2000000;
    size_t bytes = sizeof ns;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &ns, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    float ms = 0;
    CHECK(hipModuleLoadData(&module, code.data()));
    CHECK(hipModuleGetFunction(&spin, module, "krex_spin"));
    CHECK(hipEventCreate(&before));
    CHECK(hipEventCreate(&after));
    CHECK(hipModuleLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra));
    CHECK(hipEventRecord(before, stream));
    CHECK(hipModuleLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra));
    CHECK(hipEventRecord(after, stream));
    CHECK(hipEventSynchronize(after));
    CHECK(hipEventElapsedTime(&ms, before, after));
    return ms;
}

int main(int, char **argv) {
    std::ifstream file(argv[1], std::ios::binary);
    const std::string code{std::istreambuf_iterator<char>(file), {}};
    const std::vector<char> binary = bundle(code);
    const Wrapper wrapper{0x48495046, 1, binary.data(), nullptr};
    char variable[] = "counter", kernel[] = "krex_axpy_f32";
    void **modules = __hipRegisterFatBinary(&wrapper);
    __hipRegisterFunction(modules, reinterpret_cast<const void *>(axpy), kernel, kernel, -1, nullptr,
                          nullptr, nullptr, nullptr, nullptr);
    __hipRegisterVar(modules, &counter, variable, variable, 0, sizeof counter, 0, 0);
    float initial = 40;
    __hipRegisterManagedVar(modules, reinterpret_cast<void **>(&shared_sum), &initial, "shared_sum",
                            sizeof initial, alignof(float));
    hipStream_t stream;
    hipDeviceProp_t properties;
    int counted = 0;
    CHECK(hipGetDeviceProperties(&properties, 0));
    CHECK(hipStreamCreate(&stream));
    const bool correct = computes(stream) && shares(stream);
    const float ms = spins(code, stream);
    CHECK(hipMemcpyFromSymbol(&counted, counter, sizeof counted, 0, hipMemcpyDeviceToHost));
    __hipUnregisterFatBinary(modules);
    std::printf("{\"correct\": %s, \"spin_ms\": %f, \"counter\": %d, \"warp\": %d, \"name\": \"%s\", "
                "\"architecture\": \"%s\"}\n",
                correct ? "true" : "false", ms, counted, properties.warpSize, properties.name,
                properties.gcnArchName);
    return 0;
}
