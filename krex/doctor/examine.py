# SPDX-License-Identifier: Apache-2.0
"""All probes, run side by side; nothing of them is left behind, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import NamedTuple

from krex.doctor import (
    barrier,
    controller,
    devices,
    freezer,
    machine,
    memory,
    preload,
    runtimes,
)
from krex.doctor.isolate import Died, read, run_all
from krex.doctor.report import (
    SCHEMA,
    SCHEMA_VERSION,
    Check,
    Device,
    DoctorReport,
    failed,
    warned,
)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Probe(NamedTuple):
    """A check to be run in a process of its own, and what removes its traces."""

    id: str
    needed: bool
    run: Callable[[], Check]
    clean: Callable[[], None] = lambda: None


def examine(limit_s: float) -> DoctorReport:
    """Probe everything; each probe has this long. Ctrl-C ends it as cleanly as success does."""
    with _interruptible():
        probes = _probes()
        try:
            checks, found = _run(probes, limit_s)
        finally:
            with _uninterrupted():
                for probe in probes:
                    probe.clean()
    return DoctorReport(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        ok=all(check.status != "failed" for check in checks),
        checks=checks,
        devices=found,
    )


def _probes() -> list[Probe]:
    pid = os.getpid()
    uname = os.uname()
    return [
        Probe("kernel", True, partial(
            machine.check_kernel, uname.sysname, uname.release, uname.machine)),
        Probe("libc", True, partial(machine.check_libc, machine.libc_version())),
        _shared_memory(pid),
        Probe("wipe-on-fork", True, memory.check_wipe_on_fork),
        Probe("membarrier", False, barrier.check),
        Probe("pidfd", True, machine.check_pidfd),
        Probe("preload", True, preload.check),
        Probe("controller", True, partial(controller.check, pid), controller.cleaner(pid)),
        Probe("priority", False, machine.check_priority),
        _freezer(pid),
        Probe("cuda", False, runtimes.check_cuda),
        Probe("hip", False, runtimes.check_hip),
    ]  # fmt: skip


def _shared_memory(pid: int) -> Probe:
    name = memory.segment_name(pid)
    check = partial(memory.check_shared, name)
    return Probe("shared-memory", True, check, partial(memory.remove, name))


def _freezer(pid: int) -> Probe:
    """Where the controller makes its groups: the one that runs, else one started from here."""
    if controller.freezes_for_us():
        return Probe("freezer", True, freezer.leave)
    process = str(controller.peer_pid() or "self")
    base = freezer.base_of(process)
    check = partial(freezer.check, base, pid, process)
    if base is None:
        return Probe("freezer", True, check)
    freezer.clear_stale(base)
    return Probe("freezer", True, check, partial(freezer.clear, freezer.group_path(base, pid)))


def _run(probes: list[Probe], limit_s: float) -> tuple[list[Check], list[Device]]:
    loaders = devices.loaders()
    answers = run_all([*(probe.run for probe in probes), *loaders.values()], limit_s)
    by_loader = {
        name: read(answer, list[Device])
        for name, answer in zip(loaders, answers[len(probes) :], strict=True)
    }
    checks = []
    for probe, answer in zip(probes, answers, strict=False):
        out = read(answer, Check)
        checks.append(_failed_probe(probe, out) if isinstance(out, Died) else out)
    found = devices.found(by_loader)
    for check in checks:
        if check.id == "freezer":
            freezer.judge(check, found)
    return [*checks, devices.check(by_loader)], found


def _failed_probe(probe: Probe, died: Died) -> Check:
    """The finding about a probe that gave none."""
    seen = f"the probe {died.why}"
    if died.timed_out:
        fix = "if the machine is very busy, try krex doctor --timeout 60; else this thing hangs"
    elif "SIGSYS" in died.why:
        fix = "a seccomp profile kills the call: docker run --security-opt seccomp=unconfined"
    else:
        fix = "please report this, with the output of krex doctor --json"
    return (failed if probe.needed else warned)(probe.id, seen, fix)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let signals unwind the stack, so that what was made is removed."""

    def stop(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not stop the cleaning."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
