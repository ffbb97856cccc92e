# SPDX-License-Identifier: Apache-2.0
"""Runs probes side by side, each in a process and a process group of its own, with a deadline.

A driver may crash, hang or print, a sandbox may answer a system call with a signal: all of that
stays in the probe's process. None of them outlives its parent, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from krex.doctor import syscalls

T = TypeVar("T")

_ANSWER, _ERROR = b"=", b"!"
_POLL_S = 0.002
_LAST_PATIENCE_S = 1.0


class Died(NamedTuple):
    """A probe that gave no answer."""

    why: str
    timed_out: bool = False


class _Child:
    """One probe's process, and what it has said so far."""

    def __init__(self, function: Callable[[], object]) -> None:
        parent = os.getpid()
        self.said = b""
        self.fd, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become(function, write_end, parent)
            finally:
                os._exit(1)
        os.close(write_end)
        # Also done by the child; whoever is first. Then killpg below finds the group.
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)

    def read(self) -> bool:
        """Take what is there; False at the end."""
        data = os.read(self.fd, 65536)
        self.said += data
        return bool(data)

    def end(self) -> None:
        """Kill what is left of the group (all of it, if it is late) and reap the child."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.fd)
        # A process that hangs inside a driver's system call cannot even be killed: leave it then.
        deadline = time.monotonic() + _LAST_PATIENCE_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def how_it_ended(self, deadline: float) -> str | None:
        """What became of a child that closed its pipe; None if it still runs at the deadline."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (found := os.waitid(os.P_PID, self.pid, flags)) is None:
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_S)
        if found.si_code == os.CLD_EXITED:
            return f"ended with status {found.si_status}"
        return f"was killed by {signal.Signals(found.si_status).name}"


def run_all(functions: Sequence[Callable[[], object]], limit_s: float) -> list[bytes | Died]:
    """Call all functions at once, each in its own process. `read` tells what one returned."""
    deadline = time.monotonic() + limit_s
    children: list[_Child] = []
    try:
        for function in functions:
            children.append(_Child(function))  # noqa: PERF401 - each must be known to `finally`
        finished = _collect(children, deadline)
        late = Died(f"gave no answer within {limit_s:g} s", timed_out=True)
        return [
            (_result(child, deadline) if child in finished else None) or late for child in children
        ]
    finally:
        for child in children:
            child.end()


def read(answer: bytes | Died, kind: type[T]) -> T | Died:
    """What the function returned, which was of type `kind`."""
    if isinstance(answer, Died):
        return answer
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError:
        return Died("died in the middle of its answer")


def _collect(children: list[_Child], deadline: float) -> set[_Child]:
    """Read until all are finished or the deadline; those that closed their pipes."""
    finished: set[_Child] = set()
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.fd, selectors.EVENT_READ, child)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if not key.data.read():
                    selector.unregister(key.fd)
                    finished.add(key.data)
    return finished


def _result(child: _Child, deadline: float) -> bytes | Died | None:
    """None: it closed its pipe and does not end."""
    if child.said.startswith(_ANSWER):
        return child.said[1:]
    if child.said.startswith(_ERROR):
        return Died(child.said[1:].decode(errors="replace"))
    how = child.how_it_ended(deadline)
    return Died(how) if how else None


def _become(function: Callable[[], object], fd: int, parent: int) -> None:
    """In the new process: run the probe, say what it found."""
    try:
        os.setpgid(0, 0)
        syscalls.die_with(parent)
        _let_go()
        answer = _ANSWER + msgspec.json.encode(function())
    except Exception as error:  # noqa: BLE001 - whatever it was, the parent reports it
        answer = _ERROR + f"failed: {error!r}".encode()
    while answer:
        answer = answer[os.write(fd, answer) :]
    os._exit(0)


def _let_go() -> None:
    """No terminal, no handlers, no core file: what happens here is nobody's but the report's."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
