# SPDX-License-Identifier: Apache-2.0
"""The Linux calls that Python does not wrap: clone3 and signalfd."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# PyDLL keeps the GIL: the child of a raw clone has only this thread, and nobody to give it back.
_libc = ctypes.PyDLL(None, use_errno=True)

_SYS_CLONE3 = 435  # the same on every architecture
_CLONE_INTO_CGROUP = 0x2_0000_0000
_SIGCHLD = 17
_SFD_CLOEXEC = 0o2000000
_SFD_NONBLOCK = 0o4000
_SIGSET_BYTES = 128  # glibc's sigset_t


class _CloneArgs(ctypes.Structure):
    """struct clone_args of linux/sched.h, as far as the cgroup member (version 2)."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
            "set_tid",
            "set_tid_size",
            "cgroup",
        )
    ]


def fork_into_cgroup(cgroup_fd: int) -> int:
    """fork() whose child is born in the cgroup; the child's pid, 0 in the child.

    Moving a process afterwards costs 5 ms and stalls every fork of the machine meanwhile. The child
    must exec or _exit: glibc's and Python's fork handlers have not run. Raises OSError: ENOSYS
    before Linux 5.7, EACCES, EBUSY, or EPERM where a sandbox forbids it.
    """
    arguments = _CloneArgs(flags=_CLONE_INTO_CGROUP, exit_signal=_SIGCHLD, cgroup=cgroup_fd)
    syscall = _libc.syscall
    syscall.restype = ctypes.c_long
    size = ctypes.c_size_t(ctypes.sizeof(arguments))
    pid = int(syscall(ctypes.c_long(_SYS_CLONE3), ctypes.byref(arguments), size))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def open_signalfd(signals: Iterable[int]) -> int:
    """A close-on-exec, non-blocking signalfd for these (blocked) signals; raises OSError.

    Unlike a Python handler it tells who sent a signal.
    """
    mask = (ctypes.c_ubyte * _SIGSET_BYTES)()
    for number in signals:
        mask[(number - 1) // 8] |= 1 << ((number - 1) % 8)
    fd = int(_libc.signalfd(-1, ctypes.byref(mask), _SFD_CLOEXEC | _SFD_NONBLOCK))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd
