# SPDX-License-Identifier: Apache-2.0
"""Does cuCtxRecordEvent cover everything that a context was given before?

For each road to the device: put long work on it, record an event of the work's own behind it and
one of the context. When the context's is complete, the work's own has to be.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from gpu.attempt import NotRun
from gpu.driver_api import LEGACY_STREAM, NOT_READY, PER_THREAD_STREAM, Driver, Work
from gpu.rows import Job

_WORK_S = 0.02
_LIMIT_S = 5.0
_COPY_BYTES = 1 << 29
_COPIES = 16
COVERED, MISSED, TOO_SHORT = "covered", "not covered", "over before it could be seen"

Submit = Callable[[ctypes.c_void_p], None]


class Roads:
    """The ways of submitting; each records the event it is given behind its work."""

    def __init__(self, driver: Driver, copy_bytes: int) -> None:
        self._driver, self._bytes = driver, ctypes.c_size_t(copy_bytes)
        self._work = Work(driver)
        self._steps = self._work.steps_for(_WORK_S)
        self._from, self._to = driver.allocate(copy_bytes), driver.allocate(copy_bytes)

    def all(self) -> dict[str, Submit]:
        """By name."""
        own = self._driver.stream()
        return {
            "legacy stream": lambda done: self._in_stream(done, LEGACY_STREAM),
            "per-thread stream": lambda done: self._in_stream(done, PER_THREAD_STREAM),
            "non-blocking stream": lambda done: self._in_stream(done, own),
            "another thread's stream": self._in_thread,
            "copy without a stream": self._copy,
            "memset without a stream": self._fill,
        }

    def _in_stream(self, done: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        self._work.launch(self._steps, stream)
        self._driver.record(done, stream)

    def _in_thread(self, done: ctypes.c_void_p) -> None:
        def submit() -> None:
            self._driver.enter()
            self._in_stream(done, PER_THREAD_STREAM)

        thread = threading.Thread(target=submit)
        thread.start()
        thread.join()

    def _copy(self, done: ctypes.c_void_p) -> None:
        for _ in range(_COPIES):
            self._driver.call("cuMemcpyDtoD_v2", self._to, self._from, self._bytes)
        self._driver.record(done, LEGACY_STREAM)

    def _fill(self, done: ctypes.c_void_p) -> None:
        for _ in range(_COPIES):
            self._driver.call("cuMemsetD8_v2", self._to, 1, self._bytes)
        self._driver.record(done, LEGACY_STREAM)


def context_events(job: Job) -> None:
    """One row, with the answer for each road."""
    driver = Driver()
    if not driver.has("cuCtxRecordEvent"):
        raise NotRun("this driver has no cuCtxRecordEvent (12.5 and newer)")
    # The simulated device's memory is the host's, and as slow.
    roads = Roads(driver, _COPY_BYTES // 16 if job.simulated else _COPY_BYTES)
    found = {name: _ask(driver, submit) for name, submit in roads.all().items()}
    missed = [name for name, answer in found.items() if answer == MISSED]
    seen = [name for name, answer in found.items() if answer == COVERED]
    text = "; ".join(f"{name}: {answer}" for name, answer in found.items())
    if not seen and not missed:
        raise NotRun("all work was over before a query could see it running")
    job.judge("context events", not missed, text, roads=found)


def _ask(driver: Driver, submit: Submit) -> str:
    own, whole = driver.event(), driver.event()
    driver.synchronize()
    submit(own)
    driver.call("cuCtxRecordEvent", driver.context, whole)
    if driver.code("cuEventQuery", own) != NOT_READY:
        return TOO_SHORT
    deadline = time.monotonic() + _LIMIT_S
    while (code := driver.code("cuEventQuery", whole)) == NOT_READY:
        if time.monotonic() > deadline:
            return f"not complete after {_LIMIT_S:g} s"
    if code:
        return f"error {code}"
    return MISSED if driver.code("cuEventQuery", own) == NOT_READY else COVERED
