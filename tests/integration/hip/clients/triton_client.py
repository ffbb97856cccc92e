# SPDX-License-Identifier: Apache-2.0
"""Triton's AMD backend without PyTorch: compiled to a code object, launched by its own launcher."""

import json
import warnings

import triton
import triton.language as tl
from hiprt import Floats, hip, ok
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils
from triton.runtime import driver

warnings.filterwarnings("ignore")  # about defaults that will change
N, BLOCK = 100_000, 1024


class Driver(HIPDriver):
    """Answers what PyTorch would."""

    def __init__(self) -> None:
        self.utils = HIPUtils()
        self.launcher_cls = HIPLauncher

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0


class Array:
    """Floats on the device, as the launcher wants them."""

    dtype = "float32"

    def __init__(self, values: list[float]) -> None:
        self.floats = Floats(*values)

    def data_ptr(self) -> int:
        return self.floats.at.value


@triton.jit
def krex_axpy_f32(a, x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = a * tl.load(x + offset, mask=inside) + tl.load(y + offset, mask=inside)
    tl.store(y + offset, value, mask=inside)


driver.set_active(Driver())
x, y = Array(list(map(float, range(N)))), Array([1.0] * N)
kernel = krex_axpy_f32[(triton.cdiv(N, BLOCK),)](2.0, x, y, N, BLOCK)
ok(hip.hipDeviceSynchronize())
correct = y.floats.read() == [2 * i + 1 for i in range(N)]
print(json.dumps({"correct": correct, "architecture": driver.active.get_current_target().arch}))
