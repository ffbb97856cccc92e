# SPDX-License-Identifier: Apache-2.0
"""Freezing: a process is born in a cgroup, stands still, and goes on."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from krex.doctor import delegation, syscalls, traces
from krex.doctor.report import Check, Device, failed, passed, warned
from krex.launch.libc import fork_into_cgroup
from krex.protect.freezer import Group, find_base

_PATIENCE_S = 1.5  # for each thing that a busy machine may delay
_POLL_S = 0.0001
_STILL_S = 0.02
_CLEAR_S = 1.0
_CLEAR_POLL_S = 0.001


class _Failure(Exception):
    """A step did not work: what was seen, and the fix."""

    def __init__(self, seen: str, fix: str) -> None:
        super().__init__(seen)
        self.seen, self.fix = seen, fix


def base_of(process: str) -> Path | None:
    """Where a controller with that pid ("self": one that we would start) makes its groups."""
    try:
        return find_base(process)
    except OSError:
        return None


def group_path(base: Path, pid: int) -> Path:
    """The group of the doctor with this pid."""
    return base / traces.name(pid)


def check(base: Path | None, pid: int, process: str = "self") -> Check:
    """Freeze and thaw a child in a group of its own in `base`, which is that of `process`.

    Takes freezing for needed: `judge` knows better, once there is a list of devices.
    """
    if base is None:
        return failed("freezer", *delegation.why_no_base(process))
    path = group_path(base, pid)
    try:
        return _with_child(Group(path), base)
    except _Failure as failure:
        return failed("freezer", failure.seen, failure.fix)
    except OSError as error:
        seen = f"cannot make and use a cgroup in {base}: {error.strerror}"
        return failed("freezer", seen, delegation.permission())
    finally:
        clear(path)


def leave() -> Check:
    """Nothing to try: freezing is the machine's controller's affair."""
    return passed("freezer", "left to the machine's controller; `krex run` says if it cannot")


def judge(check: Check, devices: Sequence[Device]) -> None:
    """Say what the check's outcome means here: on a CPU only freezing makes regions exclusive."""
    check.needed = bool(devices) and all(device.key.startswith("cpu:") for device in devices)
    if check.status != "failed":
        return
    if check.needed:
        check.detail += "; without it no region on cpu:0 is exclusive while other commands run"
        return
    check.status = "warning"
    check.detail += (
        "; without it regions on a GPU are exclusive by the gate alone: the host code of other "
        "commands runs on beside them, and on cpu:0 no region is exclusive while others run"
    )


def clear(path: Path) -> None:
    """Kill what is in the probe's group and remove it, whatever state it is in."""
    deadline = time.monotonic() + _CLEAR_S
    while path.exists():
        with contextlib.suppress(OSError), (path / "cgroup.freeze").open("r+") as file:
            file.write("0")
        with contextlib.suppress(OSError):
            for pid in map(int, (path / "cgroup.procs").read_text().split()):
                if pid > 1:  # 0: a process of another pid namespace, which is not ours
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        if time.monotonic() > deadline:
            return
        time.sleep(_CLEAR_POLL_S)


def clear_stale(base: Path) -> None:
    """Remove the groups that killed doctors left. Their children died with them: all are empty."""
    for path in traces.stale(str(base)):
        with contextlib.suppress(OSError):  # it is that of a doctor in another pid namespace
            os.rmdir(path)


def _with_child(group: Group, base: Path) -> Check:
    # One word, stored and read as a whole (struct's pack_into would zero it first).
    with mmap.mmap(-1, mmap.PAGESIZE) as memory, memoryview(memory).cast("Q") as counter:
        pid, refusal = _start_counter(group.path, counter)
        try:
            took_s = _freeze_and_thaw(group, counter, pid, refusal)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    seen = f"a child in {base} stood still after {took_s * 1e3:.2g} ms, and went on"
    if refusal is None:
        return passed("freezer", seen)
    return warned("freezer", f"{seen}; but clone3 into a cgroup: {refusal}, so each command is "
                  "moved there after its start, which takes 5 ms", "use Linux 5.7 or newer; a "
                  "seccomp profile must let clone3 pass")  # fmt: skip


def _start_counter(path: Path, counter: memoryview) -> tuple[int, str | None]:
    """A child that counts; and why it was not born in the group, but has to move."""
    refusal = None
    parent = os.getpid()
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        pid = fork_into_cgroup(fd)
    except OSError as error:
        refusal = error.strerror
        pid = os.fork()
    finally:
        os.close(fd)
    if pid == 0:
        try:
            _count(counter, parent, path if refusal else None)
        finally:
            os._exit(1)
    return pid, refusal


def _count(counter: memoryview, parent: int, joins: Path | None) -> None:
    """In the child: count for ever."""
    syscalls.die_with(parent)
    if joins is not None:
        (joins / "cgroup.procs").write_text("0")
    number = 0
    while True:
        number += 1
        counter[0] = number


def _freeze_and_thaw(group: Group, counter: memoryview, pid: int, refusal: str | None) -> float:
    """Seconds from the request to "frozen 1". Raises _Failure."""
    if not _until(lambda: counter[0] > 0 or _has_ended(pid)) or counter[0] == 0:
        raise _Failure(
            f"no process gets into a cgroup in {group.path.parent} (clone3: {refusal})",
            "run the controller and every krex run in one cgroup of yours; "
            + delegation.permission(),
        )
    start = time.monotonic()
    group.freeze()
    if not _until(group.is_frozen):
        raise _Failure("a group does not reach `frozen 1`", delegation.sandbox())
    took_s = time.monotonic() - start
    before = counter[0]
    time.sleep(_STILL_S)
    if counter[0] != before:
        raise _Failure("a process in a frozen group runs on", delegation.sandbox())
    group.thaw()
    if not _until(lambda: counter[0] > before):
        raise _Failure("a thawed process does not go on", delegation.sandbox())
    return took_s


def _until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
