# SPDX-License-Identifier: Apache-2.0
"""A typical benchmarking command: compile the candidate, check it, time it in a region.

    krex run -- python examples/bench_opencl.py [WORK] [REPEATS]

Prints the mean duration of the candidate kernel in milliseconds, by the device's own timestamps.
"""

import statistics
import sys

import numpy as np
import pyopencl as cl

try:
    import krex
except ImportError:
    sys.exit("krex is not importable here: run this under `krex run`, or install krex-gpu")

SOURCE = """
__kernel void candidate(__global const float *x, __global float *y, int work) {
    int i = get_global_id(0);
    float v = x[i];
    for (int k = 0; k < work; k++) v = v * 0.999f + 0.001f;
    y[i] = v;
}
"""


def reference(x: np.ndarray, work: int) -> np.ndarray:
    """The same recurrence in closed form."""
    return 1 + (x - 1) * 0.999**work


def main(work: int, repeats: int) -> float:
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=profiling)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "candidate")
    x = np.random.default_rng(0).random(1024, np.float32)
    source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    target = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    kernel.set_args(source, target, np.int32(work))
    y = np.empty_like(x)
    cl.enqueue_nd_range_kernel(queue, kernel, x.shape, None)
    cl.enqueue_copy(queue, y, target)
    np.testing.assert_allclose(y, reference(x, work), rtol=1e-3)
    with krex.region("candidate"):
        events = [cl.enqueue_nd_range_kernel(queue, kernel, x.shape, None) for _ in range(repeats)]
        queue.finish()
        # Read here, so that the record can say what the timing was worth (`krex audit`).
        return statistics.fmean((e.profile.end - e.profile.start) * 1e-6 for e in events)


if __name__ == "__main__":
    words = [int(w) for w in sys.argv[1:]]
    print(main(words[0] if words else 1000, words[1] if len(words) > 1 else 100))
