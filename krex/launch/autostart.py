# SPDX-License-Identifier: Apache-2.0
"""Starting the controller when `krex run` finds none."""

from __future__ import annotations

import os
import struct
import sys
import time

from krex import paths
from krex.errors import ControllerError, UsageError
from krex.launch.channel import Channel
from krex.launch.options import READERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

IDLE_EXIT_S = 10
_START_S = 10.0
_POLL_S = 0.005
# One that lost the start race exits at once, while the winner may need this long to listen.
_RACE_S = 1.0

# More than there are: the kernel takes those that exist. The caller may have been pinned to one.
_MORE_CPUS = 1024

# What belongs to the command or to our user's program, and not to a service for all commands.
_NOT_FOR_CONTROLLER = ("LD_PRELOAD", "KREX_COMMAND", "KREX_REPORT", "KREX_REGION", "KREX_DISABLE")


def connect_or_start(path: str) -> Channel:
    """Connect to the controller behind `path`, starting it if need be; raises ControllerError.

    Raises UsageError if the environment asks for a controller that cannot be.
    """
    try:
        return Channel(path)
    except (FileNotFoundError, ConnectionRefusedError):
        pass
    except OSError as error:
        raise ControllerError(
            f"cannot connect to the controller at {path}: {error.strerror or error}",
            "run `krex serve` to see why",
        ) from None
    _check_slots(os.environ.get("KREX_SLOTS"))
    paths.prepare_socket_dir(path)
    return _wait(path, _start(path))


def _check_slots(text: str | None) -> None:
    """The controller would exit at once, and where nobody sees why."""
    read, what = READERS["number"]
    try:
        if text:
            read(text)
    except ValueError:
        raise UsageError(f"KREX_SLOTS={text} is not {what}", "correct or unset it") from None


def controller_environment(base: Mapping[str, str], path: str) -> dict[str, str]:
    """The environment of a controller that listens at `path`."""
    environment = {name: text for name, text in base.items() if name not in _NOT_FOR_CONTROLLER}
    environment["KREX_SOCKET"] = path
    # We may be imported from the working directory, which the controller leaves.
    search = [paths.package_parent(), *environment.get("PYTHONPATH", "").split(":")]
    environment["PYTHONPATH"] = ":".join(entry for entry in search if entry)
    return environment


def _start(path: str) -> int:
    """Start a controller that is nobody's child; returns its pid (it may be gone already)."""
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            pid = os.fork()
            if pid == 0:
                _become_controller(path)
            os.write(write_end, struct.pack("=i", pid))
        finally:
            os._exit(0)
    os.close(write_end)
    data = os.read(read_end, 4)
    os.close(read_end)
    os.waitpid(middle, 0)
    if len(data) < 4:
        raise ControllerError("cannot start a controller: no process to be had", "free some")
    return int(struct.unpack("=i", data)[0])


def _become_controller(path: str) -> None:
    """In the new process: let go of everything that is the caller's, then exec."""
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        # Also those we inherited: `krex run ... | cat` must see the end of its pipe.
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2:
                _close(int(name))
        os.chdir("/")
        os.umask(0o077)
        os.sched_setaffinity(0, range(_MORE_CPUS))
        arguments = [sys.executable, "-m", "krex.cli", "serve", "--idle-exit", str(IDLE_EXIT_S)]
        os.execve(sys.executable, arguments, controller_environment(os.environ, path))
    finally:
        os._exit(1)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # the one that listed the directory


def _wait(path: str, pid: int) -> Channel:
    """Connect once somebody listens; raises ControllerError after 10 s, or 1 s after a death."""
    deadline = time.monotonic() + _START_S
    dead = False
    while time.monotonic() < deadline:
        try:
            return Channel(path)
        except OSError:
            time.sleep(_POLL_S)
        if not dead and not _alive(pid):
            dead = True
            deadline = min(deadline, time.monotonic() + _RACE_S)
    raise ControllerError(
        f"the controller does not come up at {path}", "run `krex serve` to see why"
    )


def _alive(pid: int) -> bool:
    # Not our child, so its number may in theory be somebody else's by now: we would wait longer.
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
