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

# What the child says through the pipe before exec closes it: the errno of a failed exec.
_NEWS = struct.Struct("=i")


class Child:
    """A started command. `news_fd` becomes readable when exec happened, or failed.

    `held`: it is not in its cgroup, and waits before exec until somebody has moved it there.
    """

    __slots__ = ("_go_fd", "exec_errno", "news_fd", "pid")

    def __init__(self, pid: int, news_fd: int, go_fd: int) -> None:
        self.pid = pid
        self.news_fd = news_fd
        self.exec_errno = 0
        self._go_fd = go_fd

    @property
    def held(self) -> bool:
        """Whether it waits for `release` or `abandon`."""
        return self._go_fd >= 0

    def release(self) -> None:
        """Let it go on to its exec."""
        if self.held:
            try:
                os.write(self._go_fd, b"g")
            except BrokenPipeError:
                pass  # it was killed meanwhile
            self.abandon()

    def abandon(self) -> None:
        """Have it end without exec, if it is still held; so it does if we die."""
        if self.held:
            os.close(self._go_fd)
            self._go_fd = -1

    def read_news(self) -> bool:
        """Take what the child said; False once there is nothing more to come."""
        data = os.read(self.news_fd, _NEWS.size)
        if data:
            (self.exec_errno,) = _NEWS.unpack(data)
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
    Where it can't be born in `cgroup`, it is held.
    """
    read_end, write_end = os.pipe()  # close-on-exec, all
    wait_end, go_end = (-1, -1) if cgroup is None else os.pipe()
    pid, born_inside = _fork(cgroup)
    if pid == 0:
        # Whatever happens here, this copy of the interpreter must not return to the caller.
        try:
            dispositions.restore()
            if born_inside or _may_go(wait_end, go_end):
                os.write(write_end, _NEWS.pack(_exec(program, argv, environment).errno))
        finally:
            os._exit(127)
    os.close(write_end)
    child = Child(pid, read_end, go_end)
    if born_inside:
        child.abandon()
    if wait_end >= 0:
        os.close(wait_end)
    return child


def replace(
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    dispositions: Dispositions,
) -> OSError:
    """Become the program; returns (the error) only if that failed."""
    dispositions.restore()
    return _exec(program, argv, environment)


def _fork(cgroup: str | None) -> tuple[int, bool]:
    """(pid, whether the child is where it should be).

    It is not where the path means nothing to us (in a container), where we have no right to write
    to the cgroup that we have in common with it (another user's controller), or without clone3.
    """
    if cgroup is None:
        return os.fork(), True
    try:
        cgroup_fd = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return fork_into_cgroup(cgroup_fd), True
        finally:
            os.close(cgroup_fd)
    except OSError:
        return os.fork(), False


def _may_go(wait_fd: int, go_fd: int) -> bool:
    """In a held child: wait for `release`; False at its parent's end, or `abandon`."""
    os.close(go_fd)
    return os.read(wait_fd, 1) == b"g"


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
