# SPDX-License-Identifier: Apache-2.0
"""cuda.bindings.driver, and a kernel that the real NVRTC compiles."""

import ctypes
import json

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void krex_axpy_f32(float a, const float *x, float *y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
N = 1 << 16


def checked(result):
    """What a call returns beside its status. Raises RuntimeError: it failed."""
    status, *values = result
    if status.value:
        raise RuntimeError(status)
    return values[0] if len(values) == 1 else values


def compiled(architecture: int) -> bytes:
    program = checked(nvrtc.nvrtcCreateProgram(SOURCE, b"axpy.cu", 0, [], []))
    option = f"--gpu-architecture=sm_{architecture}".encode()
    checked(nvrtc.nvrtcCompileProgram(program, 1, [option]))
    image = bytes(checked(nvrtc.nvrtcGetCUBINSize(program)))
    checked(nvrtc.nvrtcGetCUBIN(program, image))
    return image


checked(driver.cuInit(0))
device = checked(driver.cuDeviceGet(0))
checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
major, minor = (
    checked(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, name), device))
    for name in (
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    )
)
module = checked(driver.cuModuleLoadData(compiled(10 * major + minor)))
kernel = checked(driver.cuModuleGetFunction(module, b"krex_axpy_f32"))
stream = checked(driver.cuStreamCreate(0))
x = np.arange(N, dtype=np.float32)
y = np.ones_like(x)
on_device = [checked(driver.cuMemAlloc(x.nbytes)) for _ in range(2)]
for address, source in zip(on_device, (x, y), strict=True):
    checked(driver.cuMemcpyHtoDAsync(address, source.ctypes.data, source.nbytes, stream))
before, after = (checked(driver.cuEventCreate(0)) for _ in range(2))
checked(driver.cuEventRecord(before, stream))
types = (ctypes.c_float, None, None, ctypes.c_size_t)
arguments = ((2.0, *on_device, N), types)
checked(driver.cuLaunchKernel(kernel, N // 256, 1, 1, 256, 1, 1, 0, stream, arguments, 0))
checked(driver.cuEventRecord(after, stream))
checked(driver.cuMemcpyDtoHAsync(y.ctypes.data, on_device[1], y.nbytes, stream))
checked(driver.cuStreamSynchronize(stream))
results = {
    "correct": bool(np.array_equal(y, 2 * x + 1)),
    "ms": checked(driver.cuEventElapsedTime(before, after)),
}
print(json.dumps(results))
