# SPDX-License-Identifier: Apache-2.0
"""What the programs here compute with: a kernel with foretold results, and its intervals."""

import time

import numpy as np
import pyopencl as cl

STEPS = 20_000
MULTIPLIER, INCREMENT = 1664525, 1013904223
SOURCE = f"""__kernel void advance(__global uint *numbers) {{
    uint x = numbers[get_global_id(0)];
    for (int i = 0; i < {STEPS}; i++) x = x * {MULTIPLIER}u + {INCREMENT}u;
    numbers[get_global_id(0)] = x; }}"""
COUNT = 64


def now_ns() -> int:
    """The clock of PoCL's profiling timestamps."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def after(launches: int) -> np.ndarray:
    """What `launches` kernels, one after the other, make of the first numbers."""
    multiply, add = 1, 0  # x -> multiply * x + add, as often as wanted, by squaring
    square, carry = MULTIPLIER, INCREMENT
    left = launches * STEPS
    while left:
        if left & 1:
            multiply, add = multiply * square, add * square + carry
        carry = carry * square + carry
        square = square * square
        left >>= 1
        multiply, add = multiply % 2**32, add % 2**32
        square, carry = square % 2**32, carry % 2**32
    first = np.arange(COUNT, dtype=np.uint64)
    return ((first * multiply + add) % 2**32).astype(np.uint32)


class Device:
    """A context with one queue, and every event that was made, for its interval."""

    def __init__(self) -> None:
        devices = (device for p in cl.get_platforms() for device in p.get_devices())
        self.context = cl.Context([next(devices)])
        self.events: list[cl.Event] = []
        program = cl.Program(self.context, SOURCE).build()
        self.kernel = cl.Kernel(program, "advance")
        self.queue = self.new_queue()

    def new_queue(self, out_of_order: bool = False) -> cl.CommandQueue:
        properties = cl.command_queue_properties.PROFILING_ENABLE
        if out_of_order:
            properties |= cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        return cl.CommandQueue(self.context, properties=properties)

    def numbers(self) -> cl.Buffer:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.arange(COUNT, dtype=np.uint32))

    def step(self, numbers, queue=None, wait_for=None) -> cl.Event:
        self.kernel.set_args(numbers)
        event = cl.enqueue_nd_range_kernel(
            queue or self.queue, self.kernel, (COUNT,), None, wait_for=wait_for
        )
        return self.note(event)

    def note(self, event: cl.Event) -> cl.Event:
        self.events.append(event)
        return event

    def read(self, numbers: cl.Buffer, queue=None) -> np.ndarray:
        host = np.empty(COUNT, np.uint32)
        self.note(cl.enqueue_copy(queue or self.queue, host, numbers))
        return host

    def intervals(self) -> list[list[int]]:
        return [[event.profile.start, event.profile.end] for event in self.events]
