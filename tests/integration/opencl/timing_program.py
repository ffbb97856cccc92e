# SPDX-License-Identifier: Apache-2.0
"""Times kernels by the profile of their events, and marks nothing: one way for each word."""

import subprocess
import sys

from device import Device

PAIRS = 10
device = Device()
numbers = device.numbers()


def read(event) -> int:
    event.wait()
    return event.profile.end - event.profile.start


def loop() -> None:
    for _ in range(PAIRS):
        read(device.step(numbers))


def batch() -> None:
    """All is submitted, one wait, all is read."""
    events = [device.step(numbers) for _ in range(PAIRS)]
    device.queue.finish()
    for event in events:
        read(event)


def unread() -> None:
    """As who has a queue that profiles, and never looks."""
    for _ in range(PAIRS):
        device.step(numbers)
        device.queue.finish()


def unprofiled() -> None:
    import pyopencl as cl

    queue = cl.CommandQueue(device.context)
    device.step(numbers, queue)
    queue.finish()


def armed() -> None:
    """As who times by the clock of the host, in a function that is marked."""
    import ctypes

    import pyopencl as cl

    shim = ctypes.CDLL(None)
    queue = cl.CommandQueue(device.context)
    shim.krex_region_arm(b"function")
    device.step(numbers, queue)
    queue.finish()
    for _ in range(3):
        device.step(numbers, queue)
        queue.finish()
    shim.krex_region_disarm()


def child() -> None:
    """A supervisor that holds a region while its child measures in another."""
    import krex

    with krex.region("supervisor"):
        subprocess.run([sys.executable, __file__, "marked"], check=True)


def marked() -> None:
    import krex

    with krex.region("child"):
        loop()


def both() -> None:
    """Two processes that both measure, of which none started the other."""
    command = [sys.executable, __file__, "marked"]
    for process in [subprocess.Popen(command) for _ in range(2)]:
        assert process.wait() == 0


for word in sys.argv[1:]:
    globals()[word]()
