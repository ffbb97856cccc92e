# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a CUDA graph, captured before the region and inside it, and replayed."""

import sys

from lacking import need

import krex

torch = need("torch")
if not torch.cuda.is_available():
    print("PyTorch sees no device", file=sys.stderr)
    sys.exit(77)
x = torch.zeros(1024, device="cuda")
y = torch.zeros(1024, device="cuda")
x.add_(1)
y.add_(1)
torch.cuda.synchronize()
before, inside = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(before):
    x.add_(1)
with krex.region("graph"):
    with torch.cuda.graph(inside):
        y.add_(1)
    for _ in range(10):
        before.replay()
        inside.replay()
    torch.cuda.synchronize()
if not bool((x == 11).all() and (y == 11).all()):
    sys.exit("the result is wrong")
