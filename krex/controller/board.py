# SPDX-License-Identifier: Apache-2.0
"""A device's board: the segment, and its accessors as methods."""

import math
import mmap
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

import posix_ipc

from krex.native import ffi, lib
from krex.protect.mappings import takes_part

GATE, HEAVY = 0, 1
LEASE_S = 1.0


_SIZE = ffi.sizeof("struct krex_board")


def _make_segment(name: str, note: Callable[[str], None]) -> tuple[int, str]:
    """A descriptor of shared memory, all of it there, and its name as /proc/PID/maps shows it.

    In /dev/shm; where that is missing, full or read-only, as in some containers, a memfd: clients
    get the descriptor, so to them there is no difference.
    """
    try:
        note(f"/{name}")
        shm = posix_ipc.SharedMemory(f"/{name}", posix_ipc.O_CREX, mode=0o600, size=_SIZE)
        shm.unlink()
        try:
            os.posix_fallocate(shm.fd, 0, _SIZE)  # now, and not as SIGBUS at the first write
        except OSError:
            os.close(shm.fd)
            raise
    except (OSError, posix_ipc.Error):
        note(f"memfd:{name}")
        fd = os.memfd_create(name)
        os.ftruncate(fd, _SIZE)
        return fd, f"memfd:{name}"
    return shm.fd, f"/{name}"


class Board:
    """Owns the shared-memory segment of one device. The name goes at once: clients get descriptors."""  # noqa: E501

    def __init__(self, device: str, note: Callable[[str], None]) -> None:
        """Create it. `note` gets its name, before it exists. Raises OSError or posix_ipc.Error."""
        # A pid says little: a controller in another pid namespace may have the same.
        token = secrets.token_hex(4)
        name = f"krex-{os.getpid()}-{token}-{device.replace(':', '-').replace('/', '-')}"
        self.fd, self._name = _make_segment(name, note)
        self._map = mmap.mmap(self.fd, _SIZE)
        self.c: Any = ffi.cast("struct krex_board *", ffi.from_buffer(self._map))
        lib.krex_board_init(self.c, device.encode(), os.getpid())
        self.barrier_failed = False
        self.lapses = 0
        self._deadline = math.inf
        self.lease()

    def lease(self, seconds: float = LEASE_S) -> None:
        """Promise to be alive for so long, and count it if the promise before was not kept.

        The clock is read last: wherever in here we stood still, the lapse is seen.
        """
        before = self._deadline
        self._deadline = time.monotonic() + seconds
        lib.krex_board_lease(self.c, int(seconds * 1e9))
        self.lapses += time.monotonic() > before

    def kept(self, lapses: int) -> bool:
        """Whether no promise was broken since `lapses` was their number.

        While one is broken, waiters may swap the gate open and every `krex run` thaws its command.
        """
        return self.lapses == lapses and time.monotonic() <= self._deadline

    def epoch(self) -> int:
        """The gate's epoch; odd is closed."""
        return int(lib.krex_gate_epoch(self.c, GATE))

    def swap(self, which: int, expected: int) -> bool:
        """Close (even) or open (odd); False if the word isn't `expected`: the lease was lost.

        Also False, with `barrier_failed`, if closing it needs a membarrier that the kernel refused.
        """
        result = int(lib.krex_gate_swap(self.c, which, expected))
        self.barrier_failed = result < 0
        return result == 1

    def is_mapped_by(self, pid: int) -> bool:
        """Whether the process has the board: not after an exec, nor when it's gone."""
        return takes_part(pid, self._name)
