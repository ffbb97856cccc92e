# SPDX-License-Identifier: Apache-2.0
"""The commands of `krex eval handshake`: siblings of two kinds, and the holder."""

import sys
import time
from pathlib import Path

import krex


def busy(ready: str) -> None:
    """Known to the controller, and at work, but not on the device."""
    with krex.region("registers"):
        pass
    Path(ready).touch()
    while True:
        sum(range(1000))


def submitting(ready: str) -> None:
    """Kernels of about a tenth of a millisecond, a few at a time, for ever."""
    import numpy as np
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    source = """__kernel void spin(__global float *a) {
        float x = a[get_global_id(0)];
        for (int k = 0; k < 2000; k++) x = x * 1.0001f + 0.1f;
        a[get_global_id(0)] = x; }"""
    kernel = cl.Kernel(cl.Program(context, source).build(), "spin")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    data = cl.Buffer(context, flags, hostbuf=np.ones(64, np.float32))
    kernel.set_args(data)
    Path(ready).touch()
    while True:
        for _ in range(4):
            cl.enqueue_nd_range_kernel(queue, kernel, (64,), None)
        queue.finish()


def hold(regions: int) -> None:
    """Enter one region after the other, and let the siblings run in between."""
    for _ in range(regions + 1):
        with krex.region():
            time.sleep(0.001)
        time.sleep(0.02)


if __name__ == "__main__":
    kind, argument = sys.argv[1:]
    if kind == "holder":
        hold(int(argument))
    elif kind == "clean":
        busy(argument)
    else:
        submitting(argument)
