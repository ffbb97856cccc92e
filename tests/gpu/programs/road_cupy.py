# SPDX-License-Identifier: Apache-2.0
"""CuPy: static cudart, a raw kernel compiled by NVRTC, and a graph captured by a stream."""

import sys

from lacking import need

import krex

cupy = need("cupy")
double = cupy.RawKernel(
    'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }', "twice"
)
x = cupy.arange(256, dtype=cupy.float32)
double((1,), (256,), (x,))
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    double((1,), (256,), (x,))
    graph = stream.end_capture()
cupy.cuda.Device().synchronize()
with krex.region("cupy"):
    double((1,), (256,), (x,))
    cupy.cuda.Device().synchronize()
    graph.launch(stream)
    stream.synchronize()
if not bool((x == cupy.arange(256) * 8).all()):
    sys.exit("the result is wrong")
