# SPDX-License-Identifier: Apache-2.0
"""What may another thread do during a capture? The drainer has to leave captures alone."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

from gpu.driver_api import GLOBAL, LEGACY_STREAM, RELAXED, THREAD_LOCAL, Driver
from gpu.rows import Job

_MODES = {"global": GLOBAL, "thread-local": THREAD_LOCAL, "relaxed": RELAXED}

Deed = Callable[[], int]  # returns the driver's code


def captures(job: Job) -> None:
    """A row for what the drainer does, and a row each for what it must not do."""
    driver = Driver()
    event = driver.event()
    driver.record(event, LEGACY_STREAM)
    noop = driver.function("krex_check_noop")
    driver.launch(noop, LEGACY_STREAM, [])  # loads it: a capture is not the time for that
    driver.synchronize()

    def query() -> int:
        return driver.code("cuEventQuery", event)

    own = _for_each_mode(driver, noop, query, relaxed=True)
    text = f"a query of an own event by a relaxed thread: {_describe(own)}"
    job.judge("queries and captures", all(whole for _, whole in own.values()), text, found=own)
    others: dict[str, tuple[Deed, bool]] = {
        "the same by a thread in its default mode": (query, False),
        "a context's synchronisation, relaxed": (lambda: driver.code("cuCtxSynchronize"), True),
    }
    if driver.has("cuCtxRecordEvent"):
        record = lambda: driver.code("cuCtxRecordEvent", driver.context, event)  # noqa: E731
        others["a context's event recorded, relaxed"] = (record, True)
    for name, (deed, relaxed) in others.items():
        found = _for_each_mode(driver, noop, deed, relaxed=relaxed)
        job.measured("queries and captures", f"{name}: {_describe(found)}", found=found)


def _for_each_mode(
    driver: Driver, noop: ctypes.c_void_p, deed: Deed, *, relaxed: bool
) -> dict[str, tuple[int, bool]]:
    """By the capture's mode: what the deed returned, and whether the capture is whole after it."""
    return {
        name: _during(driver, noop, mode, deed, relaxed=relaxed) for name, mode in _MODES.items()
    }


def _during(
    driver: Driver, noop: ctypes.c_void_p, mode: int, deed: Deed, *, relaxed: bool
) -> tuple[int, bool]:
    stream, graph = driver.stream(), ctypes.c_void_p()
    driver.call("cuStreamBeginCapture_v2", stream, mode)
    codes: list[int] = []

    def act() -> None:
        driver.enter()
        if relaxed:
            stance = ctypes.c_int(RELAXED)
            driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(stance))
        codes.append(deed())

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    launched = driver.code("cuLaunchKernel", noop, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
    ended = driver.code("cuStreamEndCapture", stream, ctypes.byref(graph))
    whole = bool(graph.value)
    if whole:
        driver.call("cuGraphDestroy", graph)
    return codes[0] if codes else -1, not launched and not ended and whole


def _describe(found: dict[str, tuple[int, bool]]) -> str:
    return ", ".join(
        f"{mode} capture {'whole' if whole else 'INVALID'}"
        + (f" (returned {code})" if code else "")
        for mode, (code, whole) in found.items()
    )
