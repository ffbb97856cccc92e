# SPDX-License-Identifier: Apache-2.0
"""A benchmarking command: real kernels, and three regions. Prints its intervals as JSON.

Kernel intervals come from the runtime's profiling timestamps (CLOCK_MONOTONIC_RAW under PoCL), region
intervals from this program's own clock, read first and last thing inside the with-block.
"""  # noqa: E501

import json
import os
import sys
import time

import numpy as np
import pyopencl as cl

import krex

SOURCE = """__kernel void spin(__global float *a, int n) {
    int i = get_global_id(0); float x = a[i];
    for (int k = 0; k < n; k++) x = x * 1.0001f + 0.1f;
    a[i] = x; }"""


def main(regions: int, misbehave: str) -> None:
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=profiling)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "spin")
    data = cl.Buffer(
        context,
        cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR,
        hostbuf=np.ones(512, np.float32),
    )
    kernel.set_args(data, np.int32(2000))
    events, inside = [], []

    def burst(count: int) -> None:
        new = [cl.enqueue_nd_range_kernel(queue, kernel, (512,), None) for _ in range(count)]
        queue.finish()
        events.extend(new)

    burst(20)
    for index in range(regions):
        with krex.region(f"timed-{index}"):
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            if misbehave:
                print("inside", flush=True)
            if misbehave == "crash":
                os.kill(os.getpid(), 9)
            if misbehave == "exit":
                os._exit(0)
            if misbehave == "hang":
                time.sleep(5)
            burst(15)
            inside.append([begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)])
        burst(20)
    kernels = [[e.profile.start, e.profile.end] for e in events]
    print(json.dumps({"kernels": kernels, "regions": inside}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
