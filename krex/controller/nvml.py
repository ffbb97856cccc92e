# SPDX-License-Identifier: Apache-2.0
"""Who has contexts on an NVIDIA device, by NVML. To ask takes milliseconds, so a thread does it.

There too it looks whether a registered process has loaded the driver's library twice: the hooks see
one of the two (dlmopen, or a copy of the file).
"""

import os
import threading
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from krex.controller.residents import Question, Resident, Unanswered
from krex.protect.mappings import has_twice

DRIVER = "libcuda.so"
_INIT_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of Linux


class Nvml:
    """Asks about the device of this key. Without nvidia-ml-py, or a driver, nobody knows."""

    is_quick = False

    def __init__(self, key: str) -> None:
        self._key = key
        self._last: _Look | None = None

    def ask(self, processes: Sequence[int], fresh_s: float = 0.0) -> Question:
        """Start a thread, unless one looks, or has looked so lately."""
        library = _library()
        if library is None:
            return Unanswered()
        last = self._last
        if not (last and (last.age() <= fresh_s or last.is_stuck())):
            self._last = last = _Look(library, self._key, tuple(processes))
        return last

    def close(self) -> None:
        """It has nothing open: a thread that looks is let go of."""


class _Look:
    """One look, by a thread of its own. It is a daemon: a driver that hangs holds nobody up."""

    def __init__(self, library: ModuleType, key: str, processes: tuple[int, ...]) -> None:
        self.processes = processes
        self.residents: Sequence[Resident] | None = None
        self.bypassing: frozenset[int] = frozenset()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(library, key), daemon=True)
        self._thread.start()

    def done(self) -> bool:
        return not self._thread.is_alive()

    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def is_stuck(self) -> bool:
        """Whether it has not come back for so long that another one would not either."""
        return not self.done() and self.age() > 1.0

    def _run(self, library: ModuleType, key: str) -> None:
        self.bypassing = frozenset(pid for pid in self.processes if has_twice(pid, DRIVER))
        found = _residents(library, key)
        if found is not None and numbers_as_we_do(found, self.processes):
            self.residents = found


def numbers_as_we_do(found: Sequence[Resident], processes: Sequence[int]) -> bool:
    """Whether NVML's pids are ours. In a container they may be those of its host.

    Then none of the processes that are known to use the device is among them.
    """
    if os.stat("/proc/self/ns/pid").st_ino == _INIT_PID_NAMESPACE:
        return True
    return not found or bool({resident.pid for resident in found}.intersection(processes))


def _residents(library: ModuleType, key: str) -> list[Resident] | None:
    try:
        library.nvmlInit()  # takes long once; it is never shut down
        found = library.nvmlDeviceGetComputeRunningProcesses_v3(_handle(library, key))
        return [Resident(int(each.pid), each.usedGpuMemory) for each in found]
    except library.NVMLError:
        return None


def _handle(library: ModuleType, key: str) -> Any:
    kind, _, name = key.partition(":")
    if kind == "mig":
        return library.nvmlDeviceGetHandleByUUID(f"MIG-{name}")
    return library.nvmlDeviceGetHandleByPciBusId(name)


def _library() -> Any:
    """nvidia-ml-py, which is in `krex-gpu[cuda]`, or None."""
    try:
        import pynvml  # by far the largest module that the controller has, so only at need
    except ImportError:
        return None
    return pynvml
