# SPDX-License-Identifier: Apache-2.0
"""cuda.core: its own compilation, memory from the device's pool, events."""

import json

import numpy as np
from cuda.core import (
    Device,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

SOURCE = """
template <typename T> __global__ void krex_axpy_f32(T a, const T *x, T *y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
NAME = "krex_axpy_f32<float>"
N = 4096

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
program = Program(SOURCE, code_type="c++", options=options)
kernel = program.compile("cubin", name_expressions=(NAME,)).get_kernel(NAME)
host = LegacyPinnedMemoryResource().allocate(4 * N)
values = np.from_dlpack(host).view(np.float32)
values[:] = np.arange(N)
x, y = (device.allocate(4 * N, stream=stream) for _ in range(2))
for buffer in (x, y):
    buffer.copy_from(host, stream=stream)
timed = EventOptions(timing_enabled=True)
before = stream.record(options=timed)
launch(stream, LaunchConfig(grid=N // 256, block=256), kernel, np.float32(3), x, y, np.uint64(N))
after = stream.record(options=timed)
y.copy_to(host, stream=stream)
stream.sync()
results = {
    "correct": bool(np.array_equal(values, 4 * np.arange(N))),
    "ms": after - before,
    "device": device.name,
}
for buffer in (x, y):
    buffer.close(stream)
stream.sync()
print(json.dumps(results))
