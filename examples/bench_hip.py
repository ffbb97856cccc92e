# SPDX-License-Identifier: Apache-2.0
"""A typical benchmarking command for HIP: compile the candidate, check it, time it in a region.

    krex run -- python examples/bench_hip.py [SIZE] [REPEATS]
    krex run --sim -- python examples/bench_hip.py [SIZE] [REPEATS] CODE_OBJECT   # without a GPU

Needs numpy and hip-python (pip install numpy hip-python), and ROCm's hiprtc unless CODE_OBJECT is
the compiled kernel (hipcc --genco, or the tests' tests/unit/data/sim/kernels.gfx90a.hsaco).
Prints the median duration of the candidate kernel in milliseconds, by the device's own events.
"""

import ctypes
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

try:
    from hip import hip, hiprtc
except ImportError:
    sys.exit("hip-python is not installed: pip install hip-python")
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


def check(answer: tuple[Any, ...]) -> Any:
    """What a call returned beside its status; ends the program if that is an error."""
    status, *values = answer
    if status.value:
        sys.exit(f"bench_hip: {status!r}")
    return values[0] if len(values) == 1 else values


def compiled() -> bytes:
    """SOURCE as a code object for the first device."""
    architecture = check(hip.hipGetDeviceProperties(0)).gcnArchName
    program = check(hiprtc.hiprtcCreateProgram(SOURCE, b"candidate.hip", 0, None, None))
    options = [f"--offload-arch={architecture}".encode()]
    (status,) = hiprtc.hiprtcCompileProgram(program, len(options), options)
    if status.value:
        log = bytearray(check(hiprtc.hiprtcGetProgramLogSize(program)))
        check(hiprtc.hiprtcGetProgramLog(program, log))
        sys.exit(f"bench_hip: the candidate does not compile:\n{log.decode()}")
    code = bytearray(check(hiprtc.hiprtcGetCodeSize(program)))
    check(hiprtc.hiprtcGetCode(program, code))
    return bytes(code)


class Candidate:
    """y = a x + y for vectors of `size`, on the first device."""

    def __init__(self, size: int, code: bytes) -> None:
        self.module = check(hip.hipModuleLoadData(code))
        self.kernel = check(hip.hipModuleGetFunction(self.module, b"krex_axpy_f32"))
        self.stream = check(hip.hipStreamCreate())
        self.size = size
        self.x = np.random.default_rng(0).random(size, np.float32)
        self.y: Any = np.ones(size, np.float32)
        self.on_device = [check(hip.hipMalloc(self.x.nbytes)) for _ in range(2)]

    def launch(self) -> None:
        """Once."""
        blocks = (self.size + THREADS - 1) // THREADS
        arguments = (ctypes.c_int(self.size), ctypes.c_float(0.5), *self.on_device)
        shape = (blocks, 1, 1, THREADS, 1, 1)
        check(hip.hipModuleLaunchKernel(self.kernel, *shape, 0, self.stream, None, arguments))

    def verify(self) -> None:
        """Launch once, and compare with numpy."""
        kind = hip.hipMemcpyKind
        for host, address in zip((self.x, self.y), self.on_device, strict=True):
            check(hip.hipMemcpy(address, host, host.nbytes, kind.hipMemcpyHostToDevice))
        self.launch()
        check(hip.hipStreamSynchronize(self.stream))
        found = np.empty_like(self.y)
        check(hip.hipMemcpy(found, self.on_device[1], found.nbytes, kind.hipMemcpyDeviceToHost))
        np.testing.assert_allclose(found, 0.5 * self.x + self.y, rtol=1e-6)

    def times_ms(self, repeats: int) -> list[float]:
        """Of each launch, after some to warm up; in a region, so on a device of its own."""
        pairs = [[check(hip.hipEventCreate()) for _ in range(2)] for _ in range(repeats)]
        with krex.region("candidate"):
            for _ in range(WARM_UP):
                self.launch()
            for start, stop in pairs:
                check(hip.hipEventRecord(start, self.stream))
                self.launch()
                check(hip.hipEventRecord(stop, self.stream))
            check(hip.hipStreamSynchronize(self.stream))
            # Read here, so that the record can say what the timing was worth (`krex audit`).
            return [check(hip.hipEventElapsedTime(start, stop)) for start, stop in pairs]


def main(size: int, repeats: int, code: bytes) -> float:
    candidate = Candidate(size, code)
    candidate.verify()
    return statistics.median(candidate.times_ms(repeats))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    files = [word for word in sys.argv[1:] if not word.isdecimal()]
    try:
        image = Path(files[0]).read_bytes() if files else compiled()
        print(main(*(numbers + [1 << 20, 100][len(numbers) :])[:2], image))
    except RuntimeError as error:  # hip-python's, where a library is missing
        sys.exit(f"bench_hip: no runtime, or no compiler: {error}")
