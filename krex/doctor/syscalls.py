# SPDX-License-Identifier: Apache-2.0
"""The system calls that probes need and Python does not wrap."""

from __future__ import annotations

import ctypes
import os
import signal

# PyDLL keeps the GIL: the child of a raw clone has nobody to give it back.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_MEMBARRIER = {"x86_64": 324, "aarch64": 283}
_PR_SET_PDEATHSIG = 1


def membarrier(command: int) -> int:
    """What the system call answers; raises OSError."""
    number = _MEMBARRIER.get(os.uname().machine)
    if number is None:
        raise OSError(f"no number of membarrier is known for {os.uname().machine}")
    zero = ctypes.c_long(0)
    answer = int(_libc.syscall(ctypes.c_long(number), ctypes.c_long(command), zero, zero))
    if answer < 0:
        raise _error()
    return answer


def die_with(parent: int) -> None:
    """Have this process killed when its parent ends; it ends at once if that has happened."""
    if _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0) != 0:
        raise _error()
    if os.getppid() != parent:
        os._exit(1)


def is_filtered() -> bool:
    """Whether a seccomp filter is in force here."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return any(line.split() == ["Seccomp:", "2"] for line in status)
    except OSError:
        return False


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
