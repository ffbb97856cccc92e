# SPDX-License-Identifier: Apache-2.0
"""PyTorch: matrix products (cuBLAS) and elementwise kernels, on two streams, timed by events."""

import sys

from lacking import need

import krex

torch = need("torch")
if not torch.cuda.is_available():
    print("PyTorch sees no device", file=sys.stderr)
    sys.exit(77)
a = torch.arange(64 * 64, dtype=torch.float64).reshape(64, 64) % 7
on_device = a.cuda()
on_device @ on_device  # loads what it needs
torch.cuda.synchronize()
side = torch.cuda.Stream()
start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
with krex.region("torch"):
    start.record()
    product = on_device @ on_device
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        result = product + 1
    torch.cuda.current_stream().wait_stream(side)
    stop.record()
    torch.cuda.synchronize()
if not torch.equal(result.cpu(), a @ a + 1) or start.elapsed_time(stop) <= 0:
    sys.exit("the result is wrong")
