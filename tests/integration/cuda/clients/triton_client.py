# SPDX-License-Identifier: Apache-2.0
"""Triton without PyTorch: compiled by its own ptxas, launched by its own launcher."""

import ctypes
import json
import warnings

import triton
import triton.language as tl
from cu import Address, Float, Size, cu, get, ok

warnings.filterwarnings("ignore")  # about defaults that will change
N, BLOCK = 100_000, 1024


class Array:
    """Floats on the device, as the launcher wants them."""

    dtype = "float32"

    def __init__(self, values: list[float]) -> None:
        self.host = (Float * len(values))(*values)
        self.size = Size(ctypes.sizeof(self.host))
        self.address = get("cuMemAlloc_v2", self.size, kind=Address)
        ok(cu.cuMemcpyHtoD_v2(self.address, self.host, self.size))

    def data_ptr(self) -> int:
        return self.address.value

    def read(self) -> list[float]:
        ok(cu.cuMemcpyDtoH_v2(self.host, self.address, self.size))
        return list(self.host)


@triton.jit
def krex_axpy_f32(a, x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = a * tl.load(x + offset, mask=inside) + tl.load(y + offset, mask=inside)
    tl.store(y + offset, value, mask=inside)


ok(cu.cuInit(0))
ok(cu.cuCtxSetCurrent(get("cuDevicePrimaryCtxRetain", 0)))  # where Triton launches without PyTorch
x, y = Array(list(map(float, range(N)))), Array([1.0] * N)
krex_axpy_f32[(triton.cdiv(N, BLOCK),)](2.0, x, y, N, BLOCK)
print(json.dumps({"correct": y.read() == [2 * i + 1 for i in range(N)]}))
