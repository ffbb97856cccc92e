# SPDX-License-Identifier: Apache-2.0
"""A controller of this version runs where commands look for it, or can be started there."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable

import krex
from krex import paths
from krex.doctor import syscalls, traces
from krex.doctor.report import Check, failed, passed
from krex.errors import ControllerError
from krex.launch.autostart import controller_environment
from krex.launch.channel import Channel

_SERVE = "run `krex serve` to see why"
_POLL_S = 0.005
_IDLE_EXIT_S = "30"  # it is stopped long before; should that fail, it still goes


def peer_pid() -> int | None:
    """The pid of the controller that runs, if one does and we can see it. Never waits."""
    pid, _ = _peer()
    return pid or None  # 0: it lives in another pid namespace


def freezes_for_us() -> bool:
    """Whether another user's controller runs, or one that sees us from outside: the machine's.

    It freezes with its own rights, in cgroups that we may not even see.
    """
    pid, uid = _peer()
    return pid == 0 or uid not in (None, os.geteuid())


def _peer() -> tuple[int | None, int | None]:
    """Pid and user of the controller that runs; None if none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as client:
        try:
            client.connect(paths.socket_path())
            answer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except (OSError, ControllerError):
            return None, None
    pid, uid, _ = struct.unpack("iII", answer)
    return pid, uid


def check(pid: int) -> Check:
    """Ask the running controller; without one, start one that nobody finds, and stop it again.

    `pid` is the doctor's own; see `cleaner`.
    """
    try:
        path = paths.socket_path()
        status = _ask(path)
    except ControllerError as error:
        return failed("controller", error.message, error.hint)
    except (FileNotFoundError, ConnectionRefusedError):
        return _check_start(path, pid)
    except OSError as error:
        return failed("controller", f"cannot connect to {path}: {error.strerror}", _SERVE)
    running, theirs = status.get("pid"), str(status.get("version"))
    if wrong := _wrong_version(theirs):
        return failed("controller", f"{wrong} (pid {running}, {path})", _stop(running))
    return passed("controller", f"version {theirs} runs as pid {running} at {path}")


def cleaner(pid: int) -> Callable[[], None]:
    """Call it before the check; call what it returns afterwards, to remove the check's traces."""
    try:
        directory = os.path.dirname(paths.socket_path())
    except ControllerError:
        return lambda: None
    was_there = os.path.isdir(directory)

    def clean() -> None:
        for folder in (_trial(directory, pid), *traces.stale(directory)):
            shutil.rmtree(folder, ignore_errors=True)
        if not was_there:
            with contextlib.suppress(OSError):  # a krex run uses it by now
                os.rmdir(directory)

    return clean


def _ask(path: str) -> dict[str, object]:
    """The running controller's part of its status. Raises OSError or ControllerError."""
    channel = Channel(path)
    try:
        channel.send({"op": "status"})
        message = channel.receive()[0] or {}
    finally:
        channel.close()
    status = message.get("status")
    controller = status.get("controller") if isinstance(status, dict) else None
    if not isinstance(controller, dict):
        said = message.get("message", "nothing that is a status")
        raise ControllerError(f"what listens at {path} answers: {said}", _stop(None))
    return controller


def _check_start(path: str, pid: int) -> Check:
    directory = os.path.dirname(path)
    try:
        paths.prepare_socket_dir(path)
        status, took_s = _start(_trial(directory, pid))
    except ControllerError as error:
        return failed("controller", error.message, error.hint)
    except OSError as error:
        seen = f"{directory} cannot be used: {error.strerror}"
        fix = "set KREX_SOCKET to a path in a directory of yours, on a local file system"
        return failed("controller", seen, fix)
    if wrong := _wrong_version(str(status.get("version"))):
        return failed("controller", wrong, "install krex-gpu again, in one place only")
    return passed("controller", f"none runs at {path}; one comes up in {took_s:.2f} s")


def _trial(directory: str, pid: int) -> str:
    """A folder beside the real socket, so that this file system is the one that is tried."""
    return os.path.join(directory, traces.name(pid))


def _start(folder: str) -> tuple[dict[str, object], float]:
    """Start a controller in this folder, ask it, stop it; what it says, and the seconds it took.

    Raises ControllerError, OSError. Whatever goes wrong: the end of the probe is its end too.
    """
    start = time.monotonic()
    parent = os.getpid()
    os.mkdir(folder, 0o700)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{fd}/s"  # the same in both processes, and never too long for a socket
    server = subprocess.Popen(
        [sys.executable, "-m", "krex.cli", "serve", "--idle-exit", _IDLE_EXIT_S],
        env=controller_environment(os.environ, path),
        pass_fds=(fd,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: syscalls.die_with(parent),  # noqa: PLW1509 - there are no threads
    )
    status = _ask_when_up(server, path)
    took_s = time.monotonic() - start
    server.terminate()
    said = server.communicate()[1].strip().splitlines()
    if status is None:
        last = said[-1] if said else f"it ends with status {server.returncode}"
        raise ControllerError(f"a controller cannot be started: {last}", _SERVE)
    return status, took_s


def _ask_when_up(server: subprocess.Popen[str], path: str) -> dict[str, object] | None:
    """What it says; None if it ends."""
    while server.poll() is None:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return _ask(path)
        time.sleep(_POLL_S)
    return None


def _wrong_version(theirs: str) -> str | None:
    ours = krex.__version__
    return None if theirs == ours else f"the controller has version {theirs}, and this krex {ours}"


def _stop(pid: object) -> str:
    who = f"kill {pid}" if pid else "stop it"
    return f"once its commands have ended, {who}; the next krex run starts one of this version"
