# SPDX-License-Identifier: Apache-2.0
"""What a user sees while a command waits for its slot.

On a terminal, one line that is kept up to date and erased at the end. Elsewhere, where lines stay,
one when the wait begins and one whenever there is another reason for it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

    from krex.launch.channel import Message
    from krex.launch.messages import Messages

_STDERR = 2
_TICK_MS = 1000
_ERASE_TO_END = b"\x1b[K"


class Progress:
    """Shows one wait. `clear` it whatever happens: what is written next must find a clean line."""

    def __init__(self, messages: Messages, *, quiet: bool) -> None:
        self.in_place = not quiet and _can_draw()
        self._messages = messages
        self._message: Message = {}
        self._received = 0.0
        self._interrupt = signal.getsignal(signal.SIGINT)
        if self.in_place and self._interrupt is signal.SIG_DFL:
            signal.signal(signal.SIGINT, self._interrupted)

    def show(self, message: Message) -> None:
        """The controller says where we stand."""
        is_news = message.get("why") != self._message.get("why")
        self._message, self._received = message, time.monotonic()
        if self.in_place:
            self._draw()
        elif is_news:
            self._messages.warn(describe(message))

    def follow(self, poll: select.poll) -> None:
        """Keep the line up to date until there is something to read."""
        while not poll.poll(_TICK_MS if self.in_place else None):
            self._draw()

    def clear(self) -> None:
        """The wait is over."""
        if self.in_place:
            self.in_place = False
            _write(b"\r" + _ERASE_TO_END)
            signal.signal(signal.SIGINT, self._interrupt)

    def _draw(self) -> None:
        if not _in_foreground():
            return  # somebody else's line is there now
        text = "krex: " + describe(self._message, time.monotonic() - self._received)
        # What runs over the edge would be there twice: the next line begins below it.
        _write(b"\r" + text[: _columns() - 1].encode("utf-8", "replace") + _ERASE_TO_END)

    def _interrupted(self, number: int, _: object) -> None:
        """End as we would have without this handler, but for the line."""
        self.clear()
        os.kill(os.getpid(), number)


def describe(message: Message, age_s: float = 0.0) -> str:
    """One line for a message of that age."""
    text = f"waiting, place {message.get('place')}"
    if "of" in message:
        text += f" of {message['of']}"
    expected = message.get("expected_wait_s")
    # It counts down, and does not stay at nothing: then nobody knows any more.
    if isinstance(expected, float | int) and expected > age_s:
        text += f", expected to take {_duration(expected - age_s)}"
    return f"{text}: {message.get('why')}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _can_draw() -> bool:
    # With a closed stderr, descriptor 2 may be a file of somebody else's.
    if sys.stderr is None or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return os.isatty(_STDERR) and _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(_STDERR) == os.getpgrp()
    except OSError:
        return True  # not the terminal that controls us: it has no background


def _columns() -> int:
    try:
        return os.get_terminal_size(_STDERR).columns or 80
    except OSError:
        return 80


def _write(data: bytes) -> None:
    try:
        os.write(_STDERR, data)
    except OSError:
        pass  # as for every other line: it must not change what the command does
