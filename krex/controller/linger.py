# SPDX-License-Identifier: Apache-2.0
"""How long a device stays with a command that times nothing at the moment: loops have gaps.

Automatic marks only: who marks a region by hand says where it ends. A mark of timed events is idle
when all of them are read, and ends if that lasts (board.h); of other marks each has its own end,
and what is kept is their hold, so that the next one finds it.
"""

import asyncio
import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from krex.controller.idle import Idle
from krex.controller.mark import ThreadMark

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.device import Device
    from krex.controller.hold import Hold
    from krex.controller.mark import Mark

LINGER_S = 0.02
LOOK_S = 0.005  # how often marks of timed events are looked at
# A hold takes no further automatic marks in after this share of `--max-hold`, and has that of timed
# events end at the next read-out: so no loop is cut short by the limit, and others get a turn.
SHARE = 0.5
# A program that has waited for its work reads the events next: it is given so long for that.
READ_S = 0.001


class Gaps:
    """How long a command usually is between two marks."""

    def __init__(self) -> None:
        self.left_at: float | None = None
        self.usual_s: float | None = None

    def entered(self) -> None:
        """It asks for the device again. The longest lately counts."""
        if self.left_at is None:
            return
        gap_s = time.monotonic() - self.left_at
        before_s = self.usual_s or 0.0
        self.usual_s = max(gap_s, before_s - (before_s - gap_s) / 8)


def linger_s(usual_s: float | None, *, others_wait: bool) -> float:
    """For how long to wait for a command's next timing."""
    if not others_wait or usual_s is None:
        return LINGER_S
    return min(2 * usual_s, LINGER_S) if usual_s <= LINGER_S else 0.0


class Linger:
    """Of one device."""

    def __init__(self, device: "Device") -> None:
        self._device = device
        self._gaps: WeakKeyDictionary[Command, Gaps] = WeakKeyDictionary()
        self._of_events: set[ThreadMark] = set()
        self._task: asyncio.Task[None] | None = None
        self._idle = Idle(device)

    def entered(self, mark: "Mark") -> None:
        """A mark asks for the device."""
        if not mark.is_automatic:
            return
        self._gaps.setdefault(mark.command, Gaps()).entered()
        self._idle.watch()
        if isinstance(mark, ThreadMark) and mark.record.marker == "events":
            self._of_events.add(mark)
            if self._task is None:
                self._task = asyncio.create_task(self._look())

    def left(self, mark: "Mark") -> None:
        """A mark ended."""
        if mark.is_automatic:  # one that yields comes back when it does: that is no gap
            left_at = None if mark.yielded else time.monotonic()
            self._gaps.setdefault(mark.command, Gaps()).left_at = left_at

    def close(self) -> None:
        """The controller ends."""
        self._idle.close()
        if self._task:
            self._task.cancel()

    def left_s(self, hold: "Hold") -> float:
        """For how long to keep a hold whose last mark has left."""
        last = hold.left[-1] if hold.left else None
        gaps = self._gaps.get(last.command) if last else None
        if last is None or gaps is None or gaps.left_at is None or not self._may_return(last, hold):
            return 0.0
        keep_s = linger_s(gaps.usual_s, others_wait=self._others_wait(last.command))
        return max(0.0, gaps.left_at + keep_s - time.monotonic())

    def _may_return(self, last: "Mark", hold: "Hold") -> bool:
        process = last.process
        alive = process and self._device.processes.get(process.block) is process
        return bool(last.is_automatic and alive and not self._has_had_its_share(hold))

    def _has_had_its_share(self, hold: "Hold") -> bool:
        limit_s = hold.first.command.max_hold_s
        return limit_s is not None and time.monotonic() > hold.first.granted + SHARE * limit_s

    def _others_wait(self, command: "Command") -> bool:
        return any(mark.command is not command for mark in self._device.queue)

    async def _look(self) -> None:
        while self._of_events:
            for mark in list(self._of_events):
                if mark.ended:
                    self._of_events.discard(mark)
                elif mark.granted:
                    self._end_if_idle(mark)
            await asyncio.sleep(LOOK_S)
        self._task = None

    def _end_if_idle(self, mark: ThreadMark) -> None:
        others_wait, hold = self._others_wait(mark.command), self._device.hold
        is_due = hold and mark in hold.marks and self._has_had_its_share(hold)
        if mark.end_idle(lambda s: READ_S if is_due else linger_s(s, others_wait=others_wait)):
            self._device.leave(mark)
        elif is_due:
            mark.ask_to_end()
