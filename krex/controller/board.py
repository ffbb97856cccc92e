# SPDX-License-Identifier: Apache-2.0
"""A device's board: the segment, and its accessors as methods."""

import mmap
import os
from pathlib import Path
from typing import Any

import posix_ipc

from krex.native import ffi, lib

GATE, HEAVY = 0, 1


class Board:
    """Owns the shared-memory segment of one device. The name goes at once: clients get descriptors."""  # noqa: E501

    def __init__(self, device: str) -> None:
        """Create it. Raises OSError or posix_ipc.Error."""
        size = ffi.sizeof("struct krex_board")
        self._name = f"/krex-{os.getpid()}-{device.replace(':', '-').replace('/', '-')}"
        shm = posix_ipc.SharedMemory(self._name, posix_ipc.O_CREX, mode=0o600, size=size)
        shm.unlink()
        self.fd: int = shm.fd
        self._map = mmap.mmap(self.fd, size)
        self.c: Any = ffi.cast("struct krex_board *", ffi.from_buffer(self._map))
        lib.krex_board_init(self.c, device.encode(), os.getpid())

    def lease(self, seconds: float) -> None:
        """Promise to be alive for so long."""
        lib.krex_board_lease(self.c, int(seconds * 1e9))

    def epoch(self) -> int:
        """The gate's epoch; odd is closed."""
        return int(lib.krex_gate_epoch(self.c, GATE))

    def swap(self, which: int, expected: int) -> bool:
        """Close (even) or open (odd); False if the word isn't `expected`: the lease was lost."""
        return int(lib.krex_gate_swap(self.c, which, expected)) == 1

    def is_mapped_by(self, pid: int) -> bool:
        """Whether the process has the board: not after an exec, nor when it's gone."""
        try:
            return f"{self._name} (deleted)" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False
