# SPDX-License-Identifier: Apache-2.0
"""Triton's do_bench, unmodified, on a simulated GPU: of PyTorch it needs events and a buffer.

call_triton_program.py do_bench | autotune
"""

import json
import sys
import warnings
from pathlib import Path

import triton
import triton.language as tl
from triton.testing import do_bench

sys.path.insert(0, str(Path(__file__).with_name("cuda")))
from cu import Address, Float, Handle, Size, cu, get, ok

warnings.filterwarnings("ignore")  # about defaults that will change
SIZE, BLOCK = 1 << 20, 1024


class Event:
    """As torch.cuda.Event."""

    def __init__(self, enable_timing=False):
        self.handle = get("cuEventCreate", 0 if enable_timing else 2)

    def record(self):
        ok(cu.cuEventRecord(self.handle, None))

    def elapsed_time(self, end):
        return get("cuEventElapsedTime", self.handle, end.handle, kind=Float).value


class Interface:
    """As torch.cuda."""

    Event = Event

    @staticmethod
    def synchronize():
        ok(cu.cuCtxSynchronize())


class Buffer:
    """As a tensor: what is cleared between repeats, and what a kernel is given."""

    dtype = "float32"

    def __init__(self):
        self.address = get("cuMemAlloc_v2", Size(4 * SIZE), kind=Address)

    def data_ptr(self):
        return self.address.value

    def zero_(self):
        ok(cu.cuMemsetD8Async(self.address, 0, Size(4 * SIZE), None))


@triton.jit
def krex_axpy_f32(a, x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = a * tl.load(x + offset, mask=inside) + tl.load(y + offset, mask=inside)
    tl.store(y + offset, value, mask=inside)


ok(cu.cuInit(0))
ok(cu.cuCtxSetCurrent(get("cuDevicePrimaryCtxRetain", 0, kind=Handle)))
driver = triton.runtime.driver.active
driver.get_device_interface = lambda: Interface
driver.get_empty_cache_for_benchmark = Buffer
x, y = Buffer(), Buffer()
if sys.argv[1] == "do_bench":
    grid = (triton.cdiv(SIZE, BLOCK),)
    ms = do_bench(lambda: krex_axpy_f32[grid](2.0, x, y, SIZE, BLOCK), warmup=2, rep=5)
    print(json.dumps({"ms": ms}))
else:
    configs = [triton.Config({"BLOCK": block}) for block in (512, 1024)]
    tuned = triton.autotune(configs, key=["n"])(krex_axpy_f32)
    tuned[lambda meta: (triton.cdiv(SIZE, meta["BLOCK"]),)](2.0, x, y, SIZE)
    print(json.dumps({"configs": len(tuned.configs_timings)}))
