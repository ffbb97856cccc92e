# SPDX-License-Identifier: Apache-2.0
"""As much of the CUDA driver API as the checks and their programs need, by ctypes: no package."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

LEGACY_STREAM, PER_THREAD_STREAM = ctypes.c_void_p(1), ctypes.c_void_p(2)
NOT_READY = 600
# Of the capture of a stream, and of a thread's stance to captures.
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NON_BLOCKING = 1
BLOCKS, THREADS = 264, 256  # of krex_check_work: work for every multiprocessor of a big device

_PTX = Path(__file__).with_name("kernels.ptx")


class DriverError(Exception):
    """A call failed; `code` is the driver's."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} failed with error {code}")
        self.code = code


class Driver:
    """The first device's primary context, made current in this thread, and the checks' kernels."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.enter()
        self._module = ctypes.c_void_p()
        # A string that ends with NUL, as the driver wants it.
        self.call("cuModuleLoadData", ctypes.byref(self._module), _PTX.read_bytes() + b"\0")

    def code(self, name: str, *arguments: Any) -> int:
        """Call a function; returns what it returned. A handle is a c_void_p, never a bare int."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises DriverError if it fails."""
        if code := self.code(name, *arguments):
            raise DriverError(name, code)

    def has(self, name: str) -> bool:
        """Whether this driver exports a function."""
        return hasattr(self.library, name)

    def enter(self) -> None:
        """Make the context current in this thread, as each thread has to."""
        self.call("cuCtxSetCurrent", self.context)

    def function(self, name: str) -> ctypes.c_void_p:
        """One of kernels.ptx."""
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), self._module, name.encode())
        return found

    def allocate(self, size: int) -> ctypes.c_uint64:
        """`size` bytes of the device's memory, which live as long as the process."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def stream(self) -> ctypes.c_void_p:
        """A new one that does not wait for the legacy stream."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), NON_BLOCKING)
        return made

    def event(self, *, timed: bool = False) -> ctypes.c_void_p:
        """A new event."""
        made = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(made), 0 if timed else 2)
        return made

    def record(self, event: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        """Record an event in a stream."""
        self.call("cuEventRecord", event, stream)

    def elapsed_s(self, start: ctypes.c_void_p, stop: ctypes.c_void_p) -> float:
        """Seconds between two events that are complete."""
        ms = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(ms), start, stop)
        return ms.value * 1e-3

    def launch(
        self,
        function: ctypes.c_void_p,
        stream: ctypes.c_void_p,
        arguments: list[Any],
        *,
        blocks: int = 1,
        threads: int = 1,
    ) -> None:
        """Launch a kernel, in one dimension."""
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(
            *(ctypes.addressof(argument) for argument in arguments)
        )
        shape = (blocks, 1, 1, threads, 1, 1)
        self.call("cuLaunchKernel", function, *shape, 0, stream, pointers, None)

    def synchronize(self) -> None:
        """Wait for the whole context."""
        self.call("cuCtxSynchronize")


class Work:
    """A kernel that takes as long as it is told, as the device is now: krex_check_work.

    On the simulated device, which does not execute it, one that says how long it takes.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._simulated = driver.has("krex_sim_device_number")
        name = "krex_spin_check" if self._simulated else "krex_check_work"
        self._kernel = driver.function(name)
        self._values = driver.allocate(4 * BLOCKS * THREADS)
        self._pairs: list[tuple[ctypes.c_void_p, ctypes.c_void_p]] = []

    def launch(self, steps: int, stream: ctypes.c_void_p = LEGACY_STREAM) -> None:
        """Submit it."""
        arguments = [self._values, ctypes.c_uint32(steps)]
        if self._simulated:
            arguments = [ctypes.c_uint64(steps)]
        shape = {"blocks": BLOCKS, "threads": THREADS}
        self._driver.launch(self._kernel, stream, arguments, **shape)

    def durations_s(self, steps: int, launches: int) -> list[float]:
        """Of so many launches, each between two events, all submitted before one is waited for.

        So the device never waits for this program, and no time of the host's is in between.
        """
        while len(self._pairs) < launches:
            self._pairs.append((self._driver.event(timed=True), self._driver.event(timed=True)))
        pairs = self._pairs[:launches]
        for start, stop in pairs:
            self._driver.record(start, LEGACY_STREAM)
            self.launch(steps)
            self._driver.record(stop, LEGACY_STREAM)
        self._driver.call("cuEventSynchronize", pairs[-1][1])
        return [self._driver.elapsed_s(start, stop) for start, stop in pairs]

    def steps_for(self, seconds: float) -> int:
        """How many steps take that long, when nothing else runs."""
        few, many = 20_000, 200_000
        self.durations_s(many, 30)  # until the clock is up
        short, long = (min(self.durations_s(steps, 7)) for steps in (few, many))
        each = max(long - short, 1e-9) / (many - few)
        return max(1, few + int((seconds - short) / each))
