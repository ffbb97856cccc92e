# SPDX-License-Identifier: Apache-2.0
"""Triton's do_bench, unmodified, on a simulated GPU: of PyTorch it needs events and a buffer.

call_triton_program.py do_bench | autotune
"""

import json
import sys
import warnings

import triton
import triton.language as tl
from call_events import SIZE, Buffer, Interface, start
from triton.testing import do_bench

warnings.filterwarnings("ignore")  # about defaults that will change
BLOCK = 1024


@triton.jit
def krex_axpy_f32(a, x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = a * tl.load(x + offset, mask=inside) + tl.load(y + offset, mask=inside)
    tl.store(y + offset, value, mask=inside)


start()
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
