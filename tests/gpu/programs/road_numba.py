# SPDX-License-Identifier: Apache-2.0
"""numba-cuda: a kernel compiled in the region, as a first call does."""

import sys

from lacking import need

import krex

numpy, cuda = need("numpy"), need("numba.cuda")


@cuda.jit
def krex_scale_f32(x, a):  # the simulated device knows it by its name
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


x = cuda.to_device(numpy.arange(256, dtype=numpy.float32))
with krex.region("numba"):
    krex_scale_f32[1, 256](x, 2.0)
    cuda.synchronize()
if not (x.copy_to_host() == numpy.arange(256) * 2).all():
    sys.exit("the result is wrong")
