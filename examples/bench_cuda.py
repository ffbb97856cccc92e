# SPDX-License-Identifier: Apache-2.0
"""A typical benchmarking command for CUDA: compile the candidate, check it, time it in a region.

    krex run -- python examples/bench_cuda.py [SIZE] [REPEATS]
    krex run --sim -- python examples/bench_cuda.py     # where there is no GPU

Needs numpy and cuda-python with its compiler (pip install numpy cuda-python nvidia-cuda-nvrtc).
Prints the median duration of the candidate kernel in milliseconds, by the device's own events.
"""

import ctypes
import statistics
import sys
from typing import Any

import numpy as np

try:
    from cuda.bindings import driver, nvrtc
except ImportError:
    sys.exit("cuda-python is not installed: pip install cuda-python nvidia-cuda-nvrtc")
try:
    import krex
except ImportError:
    sys.exit("krex is not importable here: run this under `krex run`, or install krex-gpu")

SOURCE = b"""
extern "C" __global__ void krex_axpy_f32(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
THREADS = 256
WARM_UP = 3
TYPES = (ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p)


def check(answer: tuple[Any, ...]) -> Any:
    """What a call returned beside its status; ends the program if that is an error."""
    status, *values = answer
    if status.value:
        sys.exit(f"bench_cuda: {status!r}")
    return values[0] if len(values) == 1 else values


def compiled(device: Any) -> bytes:
    """SOURCE as PTX for this device."""
    attribute = driver.CUdevice_attribute
    major = check(
        driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
    )
    minor = check(
        driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
    )
    program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"candidate.cu", 0, [], []))
    options = [f"--gpu-architecture=compute_{major}{minor}".encode()]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if status.value:
        log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        sys.exit(f"bench_cuda: the candidate does not compile:\n{log.decode()}")
    ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
    check(nvrtc.nvrtcGetPTX(program, ptx))
    return bytes(ptx)


class Candidate:
    """y = a x + y for vectors of `size`, on the first device."""

    def __init__(self, size: int) -> None:
        check(driver.cuInit(0))
        device = check(driver.cuDeviceGet(0))
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
        module = check(driver.cuModuleLoadData(compiled(device)))
        self.kernel = check(driver.cuModuleGetFunction(module, b"krex_axpy_f32"))
        self.stream = check(driver.cuStreamCreate(0))
        self.size = size
        self.x = np.random.default_rng(0).random(size, np.float32)
        self.y: Any = np.ones(size, np.float32)
        self.on_device = [check(driver.cuMemAlloc(self.x.nbytes)) for _ in range(2)]

    def launch(self) -> None:
        """Once."""
        values = (self.size, 0.5, *map(int, self.on_device))
        blocks = (self.size + THREADS - 1) // THREADS
        shape = (blocks, 1, 1, THREADS, 1, 1)
        check(driver.cuLaunchKernel(self.kernel, *shape, 0, self.stream, (values, TYPES), 0))

    def verify(self) -> None:
        """Launch once, and compare with numpy."""
        for host, address in zip((self.x, self.y), self.on_device, strict=True):
            check(driver.cuMemcpyHtoD(address, host.ctypes.data, host.nbytes))
        self.launch()
        check(driver.cuStreamSynchronize(self.stream))
        found = np.empty_like(self.y)
        check(driver.cuMemcpyDtoH(found.ctypes.data, self.on_device[1], found.nbytes))
        np.testing.assert_allclose(found, 0.5 * self.x + self.y, rtol=1e-6)

    def times_ms(self, repeats: int) -> list[float]:
        """Of each launch, after some to warm up; in a region, so on a device of its own."""
        pairs = [[check(driver.cuEventCreate(0)) for _ in range(2)] for _ in range(repeats)]
        with krex.region("candidate"):
            for _ in range(WARM_UP):
                self.launch()
            for start, stop in pairs:
                check(driver.cuEventRecord(start, self.stream))
                self.launch()
                check(driver.cuEventRecord(stop, self.stream))
            check(driver.cuStreamSynchronize(self.stream))
            # Read here, so that the record can say what the timing was worth (`krex audit`).
            return [check(driver.cuEventElapsedTime(start, stop)) for start, stop in pairs]


def main(size: int, repeats: int) -> float:
    candidate = Candidate(size)
    candidate.verify()
    return statistics.median(candidate.times_ms(repeats))


if __name__ == "__main__":
    words = [int(w) for w in sys.argv[1:]]
    try:
        print(main(words[0] if words else 1 << 20, words[1] if len(words) > 1 else 100))
    except RuntimeError as error:  # cuda-python's, where a library is missing
        sys.exit(f"bench_cuda: no driver, or no compiler: {error}")
