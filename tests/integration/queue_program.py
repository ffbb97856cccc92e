# SPDX-License-Identifier: Apache-2.0
"""Releases queues before the events of their commands, then idles: what a drain must survive."""

import sys

import pyopencl as cl

context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
data = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
for _ in range(50):
    queue = cl.CommandQueue(context)
    event = cl.enqueue_fill_buffer(queue, data, b"\1", 0, 4096)
    queue.finish()
    del queue  # the driver's event still holds it
    del event  # now it is gone
print("idle", flush=True)
sys.stdin.read()
