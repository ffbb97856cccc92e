# SPDX-License-Identifier: Apache-2.0
"""The controller's side of one board, in the test's own process: it does what the test says.

Programs with the library preloaded register here; the test opens and closes the gates, and reads
what the board says of them.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from krex.native import ffi, lib

GATE, HEAVY = 0, 1
LEASE_NS = 3_600_000_000_000


def _text(field: Any) -> str:
    return ffi.string(field).decode()


class BoardHost:
    """A board, and a socket for those who want to be on it."""

    def __init__(self, folder: Path, device: str = "pci:0000:1b:00.0") -> None:
        self.socket_path = folder / "s"
        self.keys: list[str] = []  # the device of each that registered
        self.notes: list[tuple[str, str]] = []
        self.tickets: list[str] = []  # the device of each that was given
        self._fd = os.memfd_create("krex-test-board")
        os.ftruncate(self._fd, ffi.sizeof("struct krex_board"))
        self._map = mmap.mmap(self._fd, 0)
        self.board: Any = ffi.cast("struct krex_board *", ffi.from_buffer(self._map))
        lib.krex_board_init(self.board, device.encode(), os.getpid())
        lib.krex_board_lease(self.board, LEASE_NS)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(self.socket_path))
        self._socket.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    @property
    def environment(self) -> dict[str, str]:
        return {"KREX_SOCKET": str(self.socket_path)}

    def swap(self, which: int) -> None:
        """Close a gate, or open it."""
        assert lib.krex_gate_swap(self.board, which, lib.krex_gate_epoch(self.board, which)) == 1

    def epoch(self, which: int = GATE) -> int:
        return int(lib.krex_gate_epoch(self.board, which))

    def submissions(self) -> int:
        """How many all that registered have made."""
        blocks = range(len(self.keys))
        return sum(int(lib.krex_block_submissions(self.board, block)) for block in blocks)

    def in_flight(self, which: int = GATE) -> int:
        """How many calls passed the gate before it was closed, and are not back."""
        return int(lib.krex_in_flight(self.board, which, self.epoch(which), -1))

    def ask_drain(self, block: int = 0) -> None:
        lib.krex_block_ask_drain(self.board, block, self.epoch())

    def drained(self, block: int = 0) -> bool:
        return bool(lib.krex_block_drained(self.board, block, self.epoch()))

    def longest_wait_ns(self, block: int = 0) -> int:
        return int(lib.krex_block_longest_wait_ns(self.board, block))

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        block = -1
        with client:
            while data := client.recv(4096):
                message = ffi.from_buffer("struct krex_wire *", data)
                text = _text(message.text)
                if message.type == lib.KREX_WIRE_HELLO:
                    block = self._welcome(client, text)
                elif message.type == lib.KREX_WIRE_NOTE:
                    self.notes.append((text, _text(message.text2)))
                elif message.type == lib.KREX_WIRE_TICKET:
                    self.tickets.append(text)
                    lib.krex_block_give_ticket(self.board, block, message.value)

    def _welcome(self, client: socket.socket, key: str) -> int:
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.keys.append(key)
        block = int(lib.krex_block_reserve(self.board, struct.unpack("iii", credentials)[0]))
        values = {"magic": lib.KREX_WIRE_MAGIC, "type": lib.KREX_WIRE_WELCOME, "slot": block}
        answer = bytes(ffi.buffer(ffi.new("struct krex_wire *", values)))
        socket.send_fds(client, [answer], [self._fd])
        return block
