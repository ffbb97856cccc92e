# SPDX-License-Identifier: Apache-2.0
"""Real kernels, and the intervals in which they ran: what the programs of these tests are made of.

Kernel intervals come from the runtime's profiling timestamps (CLOCK_MONOTONIC_RAW under PoCL), region
intervals from the program's own clock, read first and last thing inside the with-block.
"""  # noqa: E501

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyopencl as cl

import krex

SOURCE = """__kernel void spin(__global float *a, int n) {
    int i = get_global_id(0); float x = a[i];
    for (int k = 0; k < n; k++) x = x * 1.0001f + 0.1f;
    a[i] = x; }"""


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Work:
    """A context of this process's own, with a kernel to run in it."""

    def __init__(self) -> None:
        self.context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
        self.program = cl.Program(self.context, SOURCE).build()
        self.regions: list[tuple[int, int]] = []
        self.names: list[str] = []  # of the regions
        self._events: list[cl.Event] = []
        self._own = threading.local()

    def burst(self, count: int) -> None:
        """Run so many kernels, one after the other, in a queue of this thread's own."""
        self.submit(count)
        self._own.queue.finish()

    def submit(self, count: int) -> None:
        """The same, without waiting for their end."""
        own = self._own
        if not hasattr(own, "queue"):
            profiling = cl.command_queue_properties.PROFILING_ENABLE
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            own.data = cl.Buffer(self.context, flags, hostbuf=np.ones(512, np.float32))
            own.queue = cl.CommandQueue(self.context, properties=profiling)
            own.kernel = cl.Kernel(self.program, "spin")
            own.kernel.set_args(own.data, np.int32(2000))
        for _ in range(count):
            self._events.append(cl.enqueue_nd_range_kernel(own.queue, own.kernel, (512,), None))

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """A region, whose interval is noted."""
        with krex.region(name):
            begin = now_ns()
            yield
            self.regions.append((begin, now_ns()))
            self.names.append(name)

    def timed(self, name: str, count: int = 15) -> None:
        """A region as benchmarks have them."""
        with self.region(name):
            self.burst(count)

    def report(self, role: str) -> None:
        """Print one line: who this was, and when its kernels and regions were."""
        mine = {
            "role": role,
            "pid": os.getpid(),
            "kernels": [(e.profile.start, e.profile.end) for e in self._events],
            "regions": self.regions,
            "names": self.names,
        }
        os.write(1, json.dumps(mine).encode() + b"\n")
