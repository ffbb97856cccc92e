# SPDX-License-Identifier: Apache-2.0
"""A question to the process of the simulated devices: a connection of its own each.

On one connection the next would wait for the answer, and some answers take until a process ends.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from krex.native import ffi, lib

_PACKET = "struct krex_sim_packet *"


class Answer(NamedTuple):
    """What the device process says; `ok` is false if it can't do it, or is gone."""

    ok: bool
    value: int = 0
    value2: int = 0


NOBODY = Answer(ok=False)


def ask(
    path: Path,
    operation: int,
    answered: Callable[[Answer], None],
    *,
    device: int = 0,
    value: int = 0,
) -> None:
    """Ask the process at `path`. `answered` is called once, with NOBODY at once or at its end."""
    kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    sock = socket.socket(socket.AF_UNIX, kind)
    head = {"magic": lib.KREX_SIM_MAGIC, "op": operation, "device": device, "value": value}
    try:
        sock.connect(os.fspath(path))
        sock.send(bytes(ffi.buffer(ffi.new(_PACKET, head))))
    except OSError:
        sock.close()
        answered(NOBODY)
        return
    loop = asyncio.get_running_loop()

    def readable() -> None:
        loop.remove_reader(sock)
        answer = _read(sock)
        sock.close()
        answered(answer)

    loop.add_reader(sock, readable)


def _read(sock: socket.socket) -> Answer:
    try:
        packet = sock.recv(ffi.sizeof("struct krex_sim_packet"))
    except OSError:
        return NOBODY
    if len(packet) < ffi.sizeof("struct krex_sim_packet"):
        return NOBODY
    found = ffi.from_buffer(_PACKET, packet)
    ok = found.magic == lib.KREX_SIM_MAGIC and found.status == lib.KREX_SIM_OK
    return Answer(ok, found.value, found.value2)
