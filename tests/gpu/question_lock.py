# SPDX-License-Identifier: Apache-2.0
"""How long does cuCheckpointProcessLock take, and does it wait for the work under way?"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import time

from gpu.attempt import NotRun
from gpu.driver_api import Driver, DriverError
from gpu.programs_of import program, python
from gpu.rows import Job

_ROUNDS = 7
_TIMEOUT_MS = 2000
_WORK_MS = 50  # of one kernel of the busy target


def lock(job: Job) -> None:
    """A row for an idle target, and one for a busy one."""
    driver = Driver()
    if not driver.has("cuCheckpointProcessLock"):
        raise NotRun("this driver has no cuCheckpointProcessLock (12.8 and newer)")
    for name, work_ms in (("idle", 0), (f"busy with {_WORK_MS} ms kernels", _WORK_MS)):
        times = _measure(driver, work_ms)
        text = f"of a process that is {name}: median {statistics.median(times) * 1e3:.2f} ms, "
        text += f"most {max(times) * 1e3:.2f} ms"
        job.measured("process lock", text, lock_s=times, work_ms=work_ms)


def _measure(driver: Driver, work_ms: int) -> list[float]:
    command = python(program("busy.py"), str(work_ms), "-")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as target:
        assert target.stdout
        try:
            if target.stdout.readline() != b"ready\n":
                raise NotRun("the process to be locked did not start")
            return [_once(driver, target.pid) for _ in range(_ROUNDS)]
        except DriverError as error:
            raise NotRun(str(error)) from None
        finally:
            target.kill()


def _once(driver: Driver, pid: int) -> float:
    arguments = (ctypes.c_uint32 * 16)(_TIMEOUT_MS)  # timeoutMs, and 60 bytes that must be zero
    time.sleep(0.02)  # into the middle of a kernel
    started = time.monotonic()
    driver.call("cuCheckpointProcessLock", pid, arguments)
    taken = time.monotonic() - started
    driver.call("cuCheckpointProcessUnlock", pid, None)
    return taken
