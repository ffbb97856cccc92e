# SPDX-License-Identifier: Apache-2.0
"""numba-cuda: compiled, launched, timed by its events, and its memory freed."""

import json
import warnings

import numpy as np
from numba import cuda

warnings.filterwarnings("ignore")  # about a grid that is small
N = 10_000


@cuda.jit
def krex_axpy_f32(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


x = np.arange(N, dtype=np.float32)
y = np.ones_like(x)
on_device = [cuda.to_device(array) for array in (x, y)]
before, after = cuda.event(), cuda.event()
before.record()
krex_axpy_f32[(N + 255) // 256, 256](np.float32(2), *on_device)
after.record()
after.synchronize()
results = {
    "correct": bool(np.array_equal(on_device[1].copy_to_host(), 2 * x + 1)),
    "ms": cuda.event_elapsed_time(before, after),
}
print(json.dumps(results))
