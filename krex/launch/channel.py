# SPDX-License-Identifier: Apache-2.0
"""The connection to the controller: one JSON object a packet."""

from __future__ import annotations

import json
import os
import socket
import struct

from krex.errors import ControllerError

PROTOCOL = 4

_LARGEST_MESSAGE = 1 << 20
_PATIENCE = struct.pack("@ll", 5, 0)  # a timeval: 5 s
_HINT = "run `krex serve` to see why"

Message = dict[str, object]


class Channel:
    """A connected SEQPACKET socket, and maybe another one for messages that can wait.

    The other one is not for poll: to be woken by it would take a core from a region that begins.
    What is there was said before what comes here next, and is still there when the controller is
    gone.
    """

    def __init__(self, path: str) -> None:
        """Connect; raises OSError if nobody listens there."""
        # Kept: to make room for a message anew takes ten times as long as to receive it, and takes
        # it from a core that a region may be waiting for.
        self._room = memoryview(bytearray(_LARGEST_MESSAGE))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._aside: socket.socket | None = None
        try:
            # A stopped controller's backlog and buffer fill up; do not wait for ever. (A Python
            # timeout would not do: a non-blocking connect fails at once when the backlog is full.)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _PATIENCE)
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """For poll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close; the controller sees the end of the connection."""
        self._socket.close()
        if self._aside:
            self._aside.close()

    def listen_aside(self, fd: int) -> None:
        """Take over the descriptor of the other socket."""
        self._aside = socket.socket(fileno=fd)

    def receive_aside(self) -> Message | None:
        """The next message that waits there, if any. Raises ControllerError as `receive` does."""
        try:
            return self._receive(self._aside, socket.MSG_DONTWAIT)[0] if self._aside else None
        except BlockingIOError:
            return None

    def send(self, message: Message, fd: int = -1) -> bool:
        """Send one message; False if the controller is gone or takes nothing for 5 s.

        `fd` goes along, if it is one.
        """
        data = json.dumps(message, separators=(",", ":")).encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", fd))
        try:
            self._socket.sendmsg([data], [rights] if fd >= 0 else [], socket.MSG_NOSIGNAL)
        except OSError:
            return False
        return True

    def receive(self, *, wait: bool = True) -> tuple[Message | None, list[int]]:
        """One message and the descriptors that came with it; (None, []) at the end.

        Raises BlockingIOError if nothing is there and `wait` is false, ControllerError for a
        packet that is not a message.
        """
        return self._receive(self._socket, 0 if wait else socket.MSG_DONTWAIT)

    def _receive(self, source: socket.socket, flags: int) -> tuple[Message | None, list[int]]:
        flags |= socket.MSG_CMSG_CLOEXEC
        try:
            size, ancillary, got, _ = source.recvmsg_into([self._room], 64, flags)
        except ConnectionError:
            return None, []
        fds = _descriptors(ancillary)
        if not size:
            return None, fds
        try:
            message = json.loads(bytes(self._room[:size]))
        except ValueError:
            message = None
        if not isinstance(message, dict) or got & socket.MSG_TRUNC:
            for fd in fds:
                os.close(fd)
            raise ControllerError("the controller sent something that is not a message", _HINT)
        return message, fds


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds: list[int] = []
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds += [fd for (fd,) in struct.iter_unpack("=i", data[: len(data) // 4 * 4])]
    return fds
