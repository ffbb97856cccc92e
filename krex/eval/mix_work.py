# SPDX-License-Identifier: Apache-2.0
"""A command of `krex eval mix`: what a kernel-writing agent runs again and again.

It imports, compiles a candidate, makes inputs, checks the result against numpy and times it in a
region; so many candidates, one after the other. Which ones depends on its number only, so that the
same can be measured again alone. Times are the device's own, in nanoseconds.
"""

import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

import krex

SOURCE = """__kernel void candidate(__global const float *x, __global float *y) {
    float a = x[get_global_id(0)];
    for (int k = 0; k < %d; k++) a = a * %.6ff + 0.25f;
    y[get_global_id(0)] = a; }"""
SIZE = 256
LAUNCHES = 15


class Bench:
    """One device, and all that ran on it."""

    def __init__(self) -> None:
        self.context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)
        self.outside: list[Any] = []

    def candidate(self, draw: random.Random) -> dict[str, Any]:
        """Build, check and time one."""
        steps, factor = draw.randrange(500, 8000), draw.uniform(0.1, 0.9)
        program = cl.Program(self.context, SOURCE % (steps, factor)).build()
        kernel = cl.Kernel(program, "candidate")
        x = np.random.default_rng(steps).random(SIZE, np.float32)
        flags = cl.mem_flags
        source = cl.Buffer(self.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)
        target = cl.Buffer(self.context, flags.WRITE_ONLY, x.nbytes)
        kernel.set_args(source, target)
        self.outside += [self._launch(kernel) for _ in range(3)]
        y = np.empty_like(x)
        cl.enqueue_copy(self.queue, y, target)
        _check(x, y, steps, factor)
        with krex.region(f"{steps}"):
            begin = _now_ns()
            events = [self._launch(kernel) for _ in range(LAUNCHES)]
            self.queue.finish()
            end = _now_ns()
        spans = [_span(event) for event in events]
        durations = [stop - start for start, stop in spans[1:]]
        return {
            "begin": begin,
            "end": end,
            "kernels": spans,
            "duration_ns": statistics.median(durations),
        }

    def _launch(self, kernel: Any) -> Any:
        return cl.enqueue_nd_range_kernel(self.queue, kernel, (SIZE,), None)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)  # PoCL's clock


def _span(event: Any) -> tuple[int, int]:
    return event.profile.start, event.profile.end


def _check(x: Any, y: Any, steps: int, factor: float) -> None:
    """The loop converges to a fixed point, from wherever it starts."""
    expected = np.full_like(x, 0.25 / (1 - factor))
    if not np.allclose(y, expected, rtol=1e-3):
        raise SystemExit(f"a candidate of {steps} steps computed something else")


def main(number: int, regions: int, output: str) -> None:
    """Time so many candidates, and write what was measured."""
    bench, draw = Bench(), random.Random(number)  # noqa: S311
    found = [bench.candidate(draw) for _ in range(regions)]
    bench.queue.finish()
    outside = [_span(event) for event in bench.outside]
    Path(output).write_text(json.dumps({"regions": found, "outside": outside}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
