# SPDX-License-Identifier: Apache-2.0
"""Where a command that waits stands in the queue, and telling its `krex run`."""

from collections.abc import Callable
from typing import NamedTuple


class Standing(NamedTuple):
    """One's position in the queue of a device at one moment."""

    place: int  # from 1
    of: int
    why: str
    expected_wait_s: float | None


class Teller:
    """Tells a `krex run` where it stands, never more than one message ahead of what it has read.

    For one that is stopped and reads nothing, they would pile up.
    """

    def __init__(self, send: Callable[[Standing], None]) -> None:
        self._send = send
        self._now: Standing | None = None
        self._told: Standing | None = None
        self._has_read = True
        self._wants_all = False

    def changed(self, standing: Standing) -> None:
        """It may stand elsewhere now."""
        self._now = standing
        self._catch_up()

    def has_read(self, *, wants_all: bool) -> None:
        """It has read the last message, and wants to hear of every change, or of reasons only."""
        self._has_read, self._wants_all = True, wants_all
        self._catch_up()

    def _catch_up(self) -> None:
        if self._now is not None and self._has_read and self._is_news(self._now):
            self._told, self._has_read = self._now, False
            self._send(self._now)

    def _is_news(self, standing: Standing) -> bool:
        if self._told is None or self._wants_all:
            return standing != self._told
        return standing.why != self._told.why
