# SPDX-License-Identifier: Apache-2.0
"""Programs that stand beside a region with some feature in use; `python siblings.py FEATURE`.

Each says "ready" when it is as hard to drain as it gets, goes on until it is told "end", checks its
results and prints {"right": ..., "commands": [[start, end], ...]}.
"""

import ctypes
import json
import sys
import threading

import numpy as np
import pyopencl as cl
from device import COUNT, Device, after, now_ns
from raw import Raw, handle


class Told:
    """What the other side said, read beside the program's work."""

    def __init__(self) -> None:
        self.insides = 0
        self.ended = False
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            with self.changed:
                self.insides += line == "inside\n"
                self.ended = line == "end\n"
                self.changed.notify_all()

    def wait_inside(self, seen: int) -> None:
        """Until another region has begun, or all of them have ended."""
        with self.changed:
            self.changed.wait_for(lambda: self.insides > seen or self.ended)


def ready() -> None:
    print("ready", flush=True)


def same(numbers: np.ndarray, launches: int) -> bool:
    return bool((numbers == after(launches)).all())


def keep_busy(device: Device, told: Told) -> bool:
    """Kernels, one after the other, on the device's first queue."""
    numbers, launches = device.numbers(), 0
    ready()
    while not told.ended:
        for _ in range(3):
            device.step(numbers)
        launches += 3
        device.queue.finish()
    return same(device.read(numbers), launches)


def unset(device: Device, told: Told) -> bool:
    """Two kernels and a read wait for a user event, while another queue is busy."""
    waiting = device.new_queue()
    numbers, host = device.numbers(), np.zeros(COUNT, np.uint32)
    device.step(numbers, waiting)  # before there is any user event
    event = cl.UserEvent(device.context)
    device.step(numbers, waiting, wait_for=[event])
    device.step(numbers, waiting)
    device.note(cl.enqueue_copy(waiting, host, numbers, is_blocking=False))
    waiting.flush()
    right = keep_busy(device, told) and not host.any()
    event.set_status(cl.command_execution_status.COMPLETE)
    waiting.finish()
    return right and same(host, 3)


def set_inside(device: Device, told: Told) -> bool:
    """In each region a user event is set: what waits behind it may start only afterwards."""
    numbers, launches = device.numbers(), 0

    def launch_behind() -> cl.UserEvent:
        event = cl.UserEvent(device.context)
        device.step(numbers, wait_for=[event])
        device.queue.flush()
        return event

    event = launch_behind()
    ready()
    while not told.ended:
        told.wait_inside(launches)
        event.set_status(cl.command_execution_status.COMPLETE)
        launches += 1
        event = launch_behind()
    event.set_status(cl.command_execution_status.COMPLETE)
    return same(device.read(numbers), launches + 1)


def chained(device: Device, told: Told) -> bool:
    """What waits for a user event through another queue's command, a barrier and a marker."""
    first, second, third = (device.new_queue(out_of_order=True) for _ in range(3))
    numbers, others = device.numbers(), device.numbers()
    event = cl.UserEvent(device.context)
    behind = device.step(numbers, first, wait_for=[event])
    marker = cl.enqueue_marker(first)
    cl.enqueue_barrier(second, wait_for=[behind])
    device.step(numbers, second)
    last = device.step(numbers, third, wait_for=[marker])
    device.step(others, third)  # of these only this one may run
    for queue in (first, second, third):
        queue.flush()
    right = (
        keep_busy(device, told) and same(device.read(others), 1) and same(device.read(numbers), 0)
    )
    event.set_status(cl.command_execution_status.COMPLETE)
    last.wait()
    second.finish()
    return right and not same(device.read(numbers), 0)


def many(device: Device, told: Told) -> bool:
    """User events come and go, two at a time, on one queue that is never without one."""
    numbers, launches = device.numbers(), 0
    events = [cl.UserEvent(device.context)]
    device.step(numbers, wait_for=events)
    ready()
    while not told.ended:
        events.append(cl.UserEvent(device.context))
        device.step(numbers, wait_for=events[-1:])
        device.step(numbers)
        events.pop(0).set_status(cl.command_execution_status.COMPLETE)
        device.queue.flush()
        device.events[launches].wait()
        launches += 2
    events[0].set_status(cl.command_execution_status.COMPLETE)
    return same(device.read(numbers), launches + 1)


def out_of_order(device: Device, told: Told) -> bool:
    """Two chains of kernels in one queue, ordered by events alone."""
    queue = device.new_queue(out_of_order=True)
    chains = [(device.numbers(), []), (device.numbers(), [])]
    launches = 0
    ready()
    while not told.ended:
        for numbers, last in chains:
            last[:] = [device.step(numbers, queue, wait_for=list(last))]
        launches += 1
        if launches % 4 == 0:
            queue.finish()
    queue.finish()
    return all(same(device.read(numbers), launches) for numbers, _ in chains)


def mapped(device: Device, told: Told) -> bool:
    """Maps, blocking or not, behind kernels; the host writes through them."""
    numbers, launches, right = device.numbers(), 0, True
    flags = cl.map_flags.READ | cl.map_flags.WRITE
    ready()
    while not told.ended:
        device.step(numbers)
        launches += 1
        host, event = cl.enqueue_map_buffer(
            device.queue, numbers, flags, 0, COUNT, np.uint32, is_blocking=launches % 2 == 0
        )
        device.note(event).wait()
        right = right and same(host, 1)
        host[:] = np.arange(COUNT)
        device.note(host.base.release(device.queue))
    device.queue.finish()
    return right and same(device.read(numbers), 0)


def transfers(device: Device, told: Told) -> bool:
    """Blocking reads and writes, each behind kernels."""
    numbers, right = device.numbers(), True
    ready()
    while not told.ended:
        for _ in range(3):
            device.step(numbers)
        right = right and same(device.read(numbers), 3)
        device.note(cl.enqueue_copy(device.queue, numbers, np.arange(COUNT, dtype=np.uint32)))
    return right


def blocked_read(device: Device, told: Told) -> bool:
    """A thread stands in a blocking read behind a user event, which another thread sets."""
    numbers, host = device.numbers(), np.zeros(COUNT, np.uint32)
    event = cl.UserEvent(device.context)
    waiting = device.new_queue()
    device.step(numbers, waiting, wait_for=[event])
    reader = threading.Thread(target=cl.enqueue_copy, args=(waiting, host, numbers))
    reader.start()
    right = keep_busy(device, told) and reader.is_alive()
    event.set_status(cl.command_execution_status.COMPLETE)
    reader.join()
    return right and same(host, 1)


def shared_memory(device: Device, told: Told) -> bool:
    """Coarse-grained shared virtual memory: maps and kernels, and copies."""
    numbers = cl.csvm_empty(device.context, COUNT, np.uint32)
    copy = cl.csvm_empty(device.context, COUNT, np.uint32)
    shared, other = cl.SVM(numbers), cl.SVM(copy)
    right = True
    ready()
    while not told.ended:
        with shared.map_rw(device.queue) as host:
            host[:] = np.arange(COUNT)
        device.step(shared)
        device.note(cl.enqueue_copy(device.queue, other, shared))
        with other.map_ro(device.queue) as host:
            right = right and same(host, 1)
    device.queue.finish()
    return right


def callbacks(device: Device, told: Told) -> bool:
    """Each kernel is enqueued by the callback of the one before, in pyopencl's thread."""
    numbers, launches, stopped = device.numbers(), 0, threading.Event()

    def completed(_status: int) -> None:
        if told.ended:
            stopped.set()
        else:
            launch()

    def launch() -> None:
        nonlocal launches
        launches += 1
        event = device.step(numbers)
        device.queue.flush()
        event.set_callback(cl.command_execution_status.COMPLETE, completed)

    launch()
    ready()
    stopped.wait()
    return same(device.read(numbers), launches)


EVENT_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
NATIVE_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def driver_callbacks(device: Device, told: Told) -> bool:
    """The same in the driver's own thread, which under PoCL completes nothing meanwhile."""
    numbers, launches, stopped = device.numbers(), 0, threading.Event()
    raw = Raw()
    device.kernel.set_args(numbers)

    @EVENT_CALLBACK
    def completed(_event: int, _status: int, _data: int) -> None:
        if told.ended:
            stopped.set()
        else:
            launch()

    def launch() -> None:
        nonlocal launches
        launches += 1
        size, event = (ctypes.c_size_t * 1)(COUNT), ctypes.c_void_p()
        arguments = (handle(device.queue), handle(device.kernel), 1, None, size, None, 0, None)
        raw.call("clEnqueueNDRangeKernel", *arguments, ctypes.byref(event))
        device.note(cl.Event.from_int_ptr(event.value, retain=False))
        raw.call("clSetEventCallback", event, 0, completed, None)
        raw.call("clFlush", handle(device.queue))

    launch()
    ready()
    stopped.wait()
    return same(device.read(numbers), launches)


def native_kernels(device: Device, told: Told) -> bool:
    """Host functions that the device runs in its queue, between kernels."""
    numbers, launches, calls = device.numbers(), 0, []
    raw = Raw()
    function = NATIVE_KERNEL(lambda _arguments: calls.append(now_ns()))
    ready()
    while not told.ended:
        device.step(numbers)
        event = ctypes.c_void_p()
        nothing = (None, ctypes.c_size_t(0), 0, None, None, 0, None)
        raw.call(
            "clEnqueueNativeKernel", handle(device.queue), function, *nothing, ctypes.byref(event)
        )
        device.note(cl.Event.from_int_ptr(event.value, retain=False))
        launches += 1
        device.queue.finish()
    return len(calls) == launches and same(device.read(numbers), launches)


def unlisted(device: Device, told: Told) -> bool:
    """Asks for a submission that the shim has in its list and no hook for."""
    return Raw().extension("clEnqueueMemFillINTEL") and keep_busy(device, told)


def unlisted_any(device: Device, told: Told) -> bool:
    """The same, by the function that takes no platform."""
    return Raw().extension_of_any("clEnqueueMemFillINTEL") and keep_busy(device, told)


def unheard_of(device: Device, told: Told) -> bool:
    """Asks for a submission that is in no list."""
    return Raw().extension("clEnqueueOfTheFuture") and keep_busy(device, told)


def listed(device: Device, told: Told) -> bool:
    """Asks for an extension that submits nothing."""
    return Raw().extension("clGetMemAllocInfoINTEL") and keep_busy(device, told)


def not_there(device: Device, told: Told) -> bool:
    """Asks for a submission that no driver has."""
    return not Raw().extension("clEnqueueMemsetINTEL") and keep_busy(device, told)


FEATURES = {
    function.__name__: function
    for function in (
        unset, set_inside, chained, many, out_of_order, mapped, transfers, blocked_read,
        shared_memory, callbacks, driver_callbacks, native_kernels,
        unlisted, unlisted_any, unheard_of, listed, not_there,
    )
}  # fmt: skip


def main(feature: str) -> None:
    device = Device()
    right = FEATURES[feature](device, Told())
    print(json.dumps({"right": right, "commands": device.intervals()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
