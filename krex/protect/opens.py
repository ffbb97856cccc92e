# SPDX-License-Identifier: Apache-2.0
"""Who tries for a file lock without waiting in the kernel opens its file again and again (inotify).

Lock files of Python programs are mostly taken so. Who it was is not told, only how often.
"""

import ctypes
import os
import struct
from collections import Counter

_IN_OPEN = 0x20
_EVENT = struct.Struct("=iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class Opens:
    """Counts how often files are opened. Its descriptor is closed with the last reference to it."""

    def __init__(self) -> None:
        """Raises OSError where there is no inotify to be had."""
        self._fd = -1
        self._counts: Counter[int] = Counter()
        self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def count(self, path: str) -> int:
        """How often the file was seen opened since this was first asked, by whatever path.

        Opens that follow each other and that nobody has asked for in between are one.
        """
        watch = _libc.inotify_add_watch(self._fd, os.fsencode(path), _IN_OPEN)
        self._read()
        return self._counts[watch] if watch >= 0 else 0

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # there is nothing
                return
            at = 0
            while at < len(data):
                watch, _, _, length = _EVENT.unpack_from(data, at)
                self._counts[watch] += 1
                at += _EVENT.size + length
