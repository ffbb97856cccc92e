# SPDX-License-Identifier: Apache-2.0
"""Starting the command: in its cgroup from birth, or in our place."""

from __future__ import annotations

import errno
import os
import struct

from krex.launch.libc import fork_into_cgroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from krex.launch.signals import Dispositions

# What the child says through the pipe before exec closes it: (what, errno).
_NEWS = struct.Struct("=ci")
_NO_CGROUP = b"C"
_NO_EXEC = b"X"


class Child:
    """A started command. `news_fd` becomes readable when exec happened, or failed."""

    __slots__ = ("exec_errno", "news_fd", "no_cgroup_errno", "pid")

    def __init__(self, pid: int, news_fd: int) -> None:
        self.pid = pid
        self.news_fd = news_fd
        self.exec_errno = 0
        self.no_cgroup_errno = 0

    def read_news(self) -> bool:
        """Take what the child said; False once there is nothing more to come."""
        data = os.read(self.news_fd, 4 * _NEWS.size)
        for what, number in _NEWS.iter_unpack(data):
            if what == _NO_EXEC:
                self.exec_errno = number
            else:
                self.no_cgroup_errno = number
        return bool(data)


def spawn(
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    *,
    cgroup: str | None,
    dispositions: Dispositions,
) -> Child:
    """Start `program`; raises OSError if there is no process to be had.

    It inherits stdio, terminal, process group and working directory; of our descriptors, none.
    """
    read_end, write_end = os.pipe()  # close-on-exec, both
    pid, joins = _fork(cgroup)
    if pid == 0:
        # Whatever happens here, this copy of the interpreter must not return to the caller.
        try:
            _become(program, argv, environment, joins, write_end, dispositions)
        finally:
            os._exit(127)
    os.close(write_end)
    return Child(pid, read_end)


def replace(
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    dispositions: Dispositions,
) -> OSError:
    """Become the program; returns (the error) only if that failed."""
    dispositions.restore()
    return _exec(program, argv, environment)


def _fork(cgroup: str | None) -> tuple[int, str | None]:
    """(pid, the cgroup which the child has still to join by itself)."""
    if cgroup is None:
        return os.fork(), None
    try:
        cgroup_fd = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return fork_into_cgroup(cgroup_fd), None
        finally:
            os.close(cgroup_fd)
    except OSError:
        return os.fork(), cgroup


def _become(
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    joins: str | None,
    news_fd: int,
    dispositions: Dispositions,
) -> None:
    if joins is not None:
        try:
            _join(joins)
        except OSError as error:
            os.write(news_fd, _NEWS.pack(_NO_CGROUP, error.errno))
    dispositions.restore()
    failure = _exec(program, argv, environment)
    os.write(news_fd, _NEWS.pack(_NO_EXEC, failure.errno))


def _join(cgroup: str) -> None:
    fd = os.open(os.path.join(cgroup, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"0")
    finally:
        os.close(fd)


def _exec(program: str, argv: list[str], environment: Mapping[str, str]) -> OSError:
    try:
        os.execve(program, argv, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            return error
    # A script without a first line that says so: execvp of C, and so env, nohup and timeout, give
    # it to the shell.
    try:
        os.execve("/bin/sh", ["sh", program, *argv[1:]], environment)
    except OSError as error:
        return error
