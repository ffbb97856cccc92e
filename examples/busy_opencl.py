# SPDX-License-Identifier: Apache-2.0
"""A busy sibling: computes in short bursts until it is ended."""

import pyopencl as cl

SOURCE = """__kernel void busy(__global float *x) {
    int i = get_global_id(0);
    float v = x[i];
    for (int k = 0; k < 1000; k++) v = v * 0.999f + 0.001f;
    x[i] = v;
}"""

if __name__ == "__main__":
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "busy")
    data = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)  # a kernel does not keep its arguments
    kernel.set_args(data)
    print("ready", flush=True)
    while True:
        for _ in range(20):
            cl.enqueue_nd_range_kernel(queue, kernel, (1024,), None)
        queue.finish()
