# SPDX-License-Identifier: Apache-2.0
"""Triton: a kernel of its own, launched by its launcher, timed by triton.testing.do_bench."""

import sys

from lacking import need

import krex

torch, triton = need("torch"), need("triton")
tl = need("triton.language")
testing = need("triton.testing")


@triton.jit
def add(x, y, z, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def launch() -> None:
    add[(triton.cdiv(N, 256),)](x, y, z, N, block=256)


N = 10_000
x, y = torch.arange(N, device="cuda"), torch.arange(N, device="cuda") * 2
z = torch.empty_like(x)
launch()
with krex.region("triton"):
    taken_ms = testing.do_bench(launch, warmup=2, rep=10)
if not torch.equal(z, x * 3) or taken_ms <= 0:
    sys.exit("the result is wrong")
