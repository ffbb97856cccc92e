# SPDX-License-Identifier: Apache-2.0
"""What a client is told, in order, without waiting for it: a stopped one reads it later."""

import asyncio
import socket
from collections import deque
from typing import Any

import msgspec

# A client that stands still for minutes while its command goes through regions in a tight loop.
MOST = 1 << 16


class Outbox:
    """JSON messages to one socket; and to another, for those that need not be read at once.

    The client does not poll that one. It looks there when it has been sent something here, before
    it acts on it, and when we are gone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop, self._sock = loop, sock
        self._waiting: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._gone = False
        self._aside: tuple[socket.socket, socket.socket] | None = None

    def send(self, message: dict[str, Any], *fds: int) -> bool:
        """Send it now, or when there is room; False: nobody is there, or it is too much."""
        if self._gone or len(self._waiting) >= MOST:
            return False
        self._waiting.append((msgspec.json.encode(message), fds))
        if len(self._waiting) == 1:
            self._flush()
        return self._kept_last()

    def open_aside(self) -> int:
        """Make the other socket; the descriptor of the end to send to the client."""
        self._aside = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
        )
        return self._aside[1].fileno()

    def aside(self, message: dict[str, Any]) -> None:
        """Send it without waking anybody."""
        try:
            if self._aside:
                self._aside[0].send(msgspec.json.encode(message))
        except BlockingIOError:  # full of what it has not looked at
            self.send(message)

    def _kept_last(self) -> bool:
        """False: the other side is gone, and the last message the caller's again."""
        if self._gone:
            self._waiting.pop()
        return not self._gone

    def close(self) -> list[dict[str, Any]]:
        """Before the socket is closed: stop; the messages that found no room."""
        self._loop.remove_writer(self._sock)
        self._gone = True
        for end in self._aside or ():
            end.close()
        return [msgspec.json.decode(data) for data, _ in self._waiting]

    def _flush(self) -> None:
        try:
            while self._waiting:
                socket.send_fds(self._sock, [self._waiting[0][0]], self._waiting[0][1])
                self._waiting.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._sock, self._flush)
            return
        except OSError:
            self._gone = True
        self._loop.remove_writer(self._sock)
