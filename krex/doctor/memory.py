# SPDX-License-Identifier: Apache-2.0
"""Shared memory for boards, and the page that a fork must wipe."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os

import posix_ipc

from krex.doctor import traces
from krex.doctor.report import Check, failed, passed

# Linux's number; Python's mmap module does not name it.
_MADV_WIPEONFORK = 18
_PAGE = mmap.PAGESIZE


def segment_name(pid: int) -> str:
    """The segment of the doctor with this pid."""
    return f"/{traces.name(pid)}"


def remove(name: str) -> None:
    """Unlink what a probe that was killed in the middle left."""
    with contextlib.suppress(OSError, posix_ipc.Error):
        posix_ipc.unlink_shared_memory(name)


def check_shared(name: str) -> Check:
    """Make a segment as large as a board, fill it through one mapping, read it by another.

    As the controller does: in /dev/shm, or else in a memfd.
    """
    size = _board_size()
    if size is None:
        return failed("shared-memory", "krex._native cannot be imported, so no board can be made",
                      "build it with `python build.py`, or install krex-gpu again")  # fmt: skip
    lacks = fix = ""
    try:
        same = _in_folder(name, size)
    except posix_ipc.Error as error:
        lacks, fix = f"shm_open fails: {error}", _fix_for_folder()
    except OSError as error:
        lacks, fix = f"{error.strerror} in /dev/shm", _fix_for_space(error)
    if lacks:
        try:
            same = _in_memfd(name, size)
        except OSError as error:
            return failed("shared-memory", f"{lacks}; memfd_create: {error.strerror}", fix)
    if not same:
        return failed("shared-memory", "two mappings of one segment differ",
                      "use a Linux kernel: this sandbox does not share memory")  # fmt: skip
    seen = f"a board of {size // 1024} KiB, seen through two mappings"
    return passed("shared-memory", f"{seen} (a memfd: {lacks})" if lacks else seen)


def _in_folder(name: str, size: int) -> bool:
    """Raises OSError, posix_ipc.Error."""
    try:
        shm = posix_ipc.SharedMemory(name, posix_ipc.O_CREX, mode=0o600, size=size)
    except OSError as error:
        raise posix_ipc.Error(str(error)) from None
    try:
        # Now, and not at the first write to a page, where the answer would be SIGBUS.
        os.posix_fallocate(shm.fd, 0, size)
        return _is_shared(shm.fd, size)
    finally:
        shm.unlink()
        shm.close_fd()


def _in_memfd(name: str, size: int) -> bool:
    fd = os.memfd_create(name.strip("/"))
    try:
        os.ftruncate(fd, size)
        return _is_shared(fd, size)
    finally:
        os.close(fd)


def check_wipe_on_fork() -> Check:
    """A forked child must find the marked page zeroed: so it never takes its parent's block."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, _PAGE, flags=flags) as page:
        try:
            page.madvise(_MADV_WIPEONFORK)
        except OSError as error:
            return failed("wipe-on-fork", f"madvise(MADV_WIPEONFORK): {error.strerror}",
                          "use Linux 4.14 or newer, outside sandboxes that emulate it "
                          "(gVisor); a seccomp profile must let madvise pass")  # fmt: skip
        page[0] = 1
        pid = os.fork()
        if pid == 0:
            os._exit(page[0])
        _, status = os.waitpid(pid, 0)
    if status != 0:
        return failed("wipe-on-fork", "a forked child still sees the page marked MADV_WIPEONFORK",
                      "use Linux 4.14 or newer, outside sandboxes that emulate it")  # fmt: skip
    return passed("wipe-on-fork", "a forked child sees zeros")


def _board_size() -> int | None:
    try:
        from krex.native import ffi
    except ImportError:
        return None
    return int(ffi.sizeof("struct krex_board"))


def _is_shared(fd: int, size: int) -> bool:
    with mmap.mmap(fd, size) as one, mmap.mmap(fd, size) as other:
        for offset in range(0, size, _PAGE):
            one[offset] = offset // _PAGE % 251 + 1
        return all(other[at] == at // _PAGE % 251 + 1 for at in range(0, size, _PAGE))


def _fix_for_folder() -> str:
    if not os.path.isdir("/dev/shm"):  # noqa: S108 - where glibc puts it
        return "mount it: mount -t tmpfs tmpfs /dev/shm (a container: docker run --ipc=private)"
    return (
        "make /dev/shm a writable tmpfs, mode 1777: mount -o remount,rw,mode=1777 /dev/shm "
        "(a container: docker run --ipc=private, or --ipc=host)"
    )


def _fix_for_space(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "free space in /dev/shm or enlarge it: docker run --shm-size=1g, or --ipc=host"
    return "make /dev/shm a tmpfs: mount -t tmpfs tmpfs /dev/shm"
