# SPDX-License-Identifier: Apache-2.0
"""The other side of KREX_TEST_STOP_AT: says who goes on at which point, and who waits there.

Also all points there are, by whose step they are: tests/unit/test_stop_points.py compares them with
the sources.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from pathlib import Path
from typing import NamedTuple

from support.waiting import DEADLINE_S

# The controller's, in the order in which a region comes by. After "leaving" its record is complete.
CONTROLLER = (
    "heavy-closed",
    "gate-closed",
    "in-flight-zero",
    "drain-asked",
    "drained",
    "freezing",
    "frozen",
    "pinned",  # only where there is a slice
    "before-grant",
    "granted",
    "leaving",
    "pass-removed",
    "holder-drained",
    "thawed",
    "reopened",
)
# The library's.
NEWCOMER = ("registered",)
SIBLING = ("announced", "at-the-gate", "drain-begun", "drain-done", "drain-told")
HOLDER = ("mark-requested", "mark-granted", "mark-leaving")
# Those of a CUDA program: tests/integration/cuda, test_tickets.py and test_captures.py.
CUDA = ("ticket-awaited", "ticket-taken", "beside-a-long-call")


class Reached(NamedTuple):
    """A process that waits at a point."""

    name: str
    pid: int
    connection: socket.socket

    def go_on(self) -> None:
        self.connection.close()


class StopPoints:
    """Lets everybody pass but the first one that gets to the point that is armed."""

    def __init__(self, path: Path) -> None:
        self.action = f"*:{path}"
        self.seen: set[str] = set()
        self._armed = ""
        self._reached: queue.Queue[Reached] = queue.Queue()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def arm(self, name: str) -> None:
        self._armed = name

    def is_reached(self) -> bool:
        """Whether somebody is at the armed point."""
        return not self._reached.empty()

    def wait(self) -> Reached:
        """Wait until somebody is at the armed point."""
        try:
            return self._reached.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise AssertionError(f"nobody got to {self._armed}; seen: {self.seen}") from None

    def close(self) -> None:
        # shutdown, because a close alone does not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._meet(connection)

    def _meet(self, connection: socket.socket) -> None:
        name, _, pid = connection.recv(64).decode().partition(" ")
        self.seen.add(name)
        if not pid or name != self._armed:
            connection.close()
            return
        self._armed = ""
        self._reached.put(Reached(name, int(pid), connection))
