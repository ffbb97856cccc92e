# SPDX-License-Identifier: Apache-2.0
"""A short command: imports PyTorch and Triton, compiles a kernel, checks it, and times it."""

import sys

from lacking import need

import krex

torch, triton = need("torch"), need("triton")
tl = need("triton.language")


@triton.jit
def scale(x, y, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 3, mask=at < n)


def launch() -> None:
    scale[(triton.cdiv(N, 1024),)](x, y, N, block=1024)


N = 1 << 24
x = torch.arange(N, device="cuda") % 100
y = torch.empty_like(x)
launch()
if not torch.equal(y, x * 3):
    sys.exit("the result is wrong")
with krex.region("scale"):
    pairs = []
    for _ in range(200):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        pair[0].record()
        launch()
        pair[1].record()
        pairs.append(pair)
    torch.cuda.synchronize()
times = sorted(start.elapsed_time(stop) for start, stop in pairs)
print(times[len(times) // 2])
