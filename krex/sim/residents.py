# SPDX-License-Identifier: Apache-2.0
"""Who has contexts on a simulated device: a question that takes some ten microseconds.

So the connection is kept, and no thread and no event loop comes between.
"""

import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from krex.controller.residents import Question, Resident, Unanswered
from krex.native import ffi, lib

_PACKET = "struct krex_sim_packet *"
_SIZE = ffi.sizeof("struct krex_sim_packet")


class Simulated:
    """Asks about the simulated device of this number."""

    is_quick = True

    def __init__(self, path: Path, device: int) -> None:
        """`path` is the socket of the process of the devices, whether or not it is there yet."""
        self._path, self._device = path, device
        self._idle: socket.socket | None = None

    def ask(self, processes: Sequence[int], fresh_s: float = 0.0) -> Question:
        """Ask now. Nobody knows if the process of the devices is not there."""
        idle, self._idle = self._idle, None  # who asks meanwhile has a connection of its own
        if idle:
            with contextlib.suppress(OSError):  # it was that of a process that ended
                return _Asked(self, idle, self._device, processes)
        with contextlib.suppress(OSError):
            return _Asked(self, self._connect(), self._device, processes)
        return Unanswered()

    def close(self) -> None:
        """Hang up."""
        if self._idle:
            self._idle.close()
        self._idle = None

    def _connect(self) -> socket.socket:
        kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        sock = socket.socket(socket.AF_UNIX, kind)
        try:
            sock.connect(os.fspath(self._path))
        except OSError:
            sock.close()
            raise
        return sock

    def answered(self, sock: socket.socket) -> None:
        """A connection that is free again."""
        if self._idle:
            sock.close()
        else:
            self._idle = sock


class _Asked:
    """Asks again until it has all: an answer has room for some thirty.

    If nobody waits for it, its connection goes with it, and no answer is taken for another's.
    """

    bypassing: frozenset[int] = frozenset()

    def __init__(
        self, adapter: Simulated, sock: socket.socket, device: int, processes: Sequence[int]
    ) -> None:
        """Raises OSError."""
        self.processes = processes
        self._adapter, self._device = adapter, device
        self._socket: socket.socket | None = sock
        self._found: list[Resident] = []
        self._is_known = False
        self._ask(sock, 0)

    def __del__(self) -> None:
        if self._socket:
            self._socket.close()

    @property
    def residents(self) -> Sequence[Resident] | None:
        return self._found if self._is_known else None

    def done(self) -> bool:
        while self._socket:
            try:
                packet = self._socket.recv(_SIZE)
                following = self._read(packet)
                if following:
                    self._ask(self._socket, following)
                    continue
            except BlockingIOError:
                return False
            except (OSError, ValueError):  # it ended, or is of another version
                self._socket.close()
            else:
                self._is_known = True
                self._adapter.answered(self._socket)
            self._socket = None
        return True

    def _ask(self, sock: socket.socket, first: int) -> None:
        head = {"magic": lib.KREX_SIM_MAGIC, "op": lib.KREX_SIM_RESIDENTS}
        head |= {"device": self._device, "value": first}
        sock.send(bytes(ffi.buffer(ffi.new(_PACKET, head))))

    def _read(self, packet: bytes) -> int:
        """The pid to go on with; 0: that was all. Raises ValueError."""
        if len(packet) < _SIZE:
            raise ValueError("no packet")
        answer = ffi.from_buffer(_PACKET, packet)
        if answer.magic != lib.KREX_SIM_MAGIC or answer.status != lib.KREX_SIM_OK:
            raise ValueError("no answer")
        for word in ffi.string(answer.text).decode().split():
            self._found.append(Resident(*map(int, word.split(":"))))
        return int(answer.value)
