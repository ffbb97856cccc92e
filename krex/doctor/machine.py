# SPDX-License-Identifier: Apache-2.0
"""What the machine is: kernel, processor, C library, pidfds, and how far our priority goes."""

from __future__ import annotations

import os
import re
import select
import sys

from krex.doctor import syscalls
from krex.doctor.report import Check, failed, passed, warned
from krex.protect.priority import NICE, raise_priority

_OLDEST_KERNEL = (5, 3)  # pidfd_open
_GOOD_KERNEL = (5, 7)  # clone3 into a cgroup
_ARCHITECTURES = ("x86_64", "aarch64")
_OLDEST_GLIBC = (2, 28)
_PATIENCE_MS = 2000


def check_kernel(system: str, release: str, machine: str) -> Check:
    """Judge what uname says."""
    text = f"{system} {release} on {machine}"
    if system != "Linux" or machine not in _ARCHITECTURES or sys.maxsize < 1 << 32:
        return failed("kernel", f"{text}, {sys.maxsize.bit_length() + 1}-bit Python",
                      "use 64-bit Linux and Python on x86-64 or aarch64")  # fmt: skip
    version = _numbers(release)
    if version < _OLDEST_KERNEL:
        return failed("kernel", text, "use Linux 5.3 or newer, better 5.7")
    if version < _GOOD_KERNEL:
        return warned("kernel", f"{text}: commands cannot be born in their cgroup, and each start "
                      "takes 5 ms more", "use Linux 5.7 or newer", needed=True)  # fmt: skip
    return passed("kernel", text)


def check_libc(version: str | None) -> Check:
    """Judge what confstr says: libkrex.so asks for symbols of glibc 2.28."""
    name, _, number = (version or "").partition(" ")
    if name != "glibc":
        return failed("libc", f"the C library is {version or 'not glibc'}",
                      "use a system with glibc, such as Debian or Fedora: the preload library "
                      "cannot live with musl")  # fmt: skip
    if _numbers(number) < _OLDEST_GLIBC:
        return failed("libc", f"{name} {number}", "use a system with glibc 2.28 or newer")
    return passed("libc", f"{name} {number}")


def libc_version() -> str | None:
    """For example "glibc 2.36"; None where the C library does not say."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def check_pidfd() -> Check:
    """The controller must notice the death of a process by its pidfd."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    os.close(read_end)
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        return failed("pidfd", f"pidfd_open: {error.strerror}", _pidfd_fix())
    finally:
        os.close(write_end)  # the child ends
    told = select.poll()
    told.register(pidfd, select.POLLIN)
    noticed = bool(told.poll(_PATIENCE_MS))
    os.waitpid(pid, 0)
    if not noticed:
        return failed("pidfd", "a pidfd does not tell that its process ended", _pidfd_fix())
    return passed("pidfd", "a pidfd tells that its process ended")


def check_priority() -> Check:
    """Raise our own priority as the controller does with its own. This process is a throw-away."""
    try:
        reached = raise_priority()
    except OSError as error:
        return warned("priority", f"nice {NICE}: {error.strerror}; on a busy machine "
                      "regions are granted and released milliseconds later",
                      "raise the limit: '- rtprio 1' for you in /etc/security/limits.conf, "
                      "LimitRTPRIO=1 in a service, docker run --cap-add=SYS_NICE")  # fmt: skip
    return passed("priority", f"the controller gets {reached}", needed=False)


def _pidfd_fix() -> str:
    if syscalls.is_filtered():
        return "let the seccomp profile allow pidfd_open (Docker's default does since 20.10)"
    return "use Linux 5.3 or newer, outside sandboxes that emulate it"


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else (0,)
