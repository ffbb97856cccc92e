# SPDX-License-Identifier: Apache-2.0
"""Has automatic marks yield that stand idle while others wait: a harness that computes on the host.

Idle is a holder that submits nothing for IDLE_S, is inside no call that could, and has nothing
outstanding. The last its own drainer says, when it is asked: a long kernel is not idle, and neither
is a process that cannot tell. Who wrote a mark into a program keeps the device to its end.
"""

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from krex.controller.board import GATE, HEAVY
from krex.controller.waiting import Abort, until
from krex.native import lib

if TYPE_CHECKING:
    from krex.controller.device import Device
    from krex.controller.hold import Hold
    from krex.controller.mark import Mark

IDLE_S = 0.2
LOOK_S = 0.05
# What is idle says so in a fraction of this. Who isn't is asked again after another IDLE_S.
ANSWER_S = 0.01
_numbers = itertools.count(1)


class Idle:
    """Of one device."""

    def __init__(self, device: "Device") -> None:
        self._device = device
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """An automatic mark asks for the device."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """The controller ends."""
        if self._task:
            self._task.cancel()

    async def _run(self) -> None:
        seen, since = None, time.monotonic()
        while any(mark.is_automatic for mark in self._marks()):
            await asyncio.sleep(LOOK_S)
            now, hold = self._activity(), self._device.hold
            if now is None or now != seen:
                seen, since = now, time.monotonic()
            elif hold and time.monotonic() - since >= IDLE_S:
                if await self._has_nothing_outstanding(hold) and self._activity() == seen:
                    self._yield(hold)
                since = time.monotonic()
        self._task = None

    def _marks(self) -> "list[Mark]":
        hold = self._device.hold
        return [*self._device.queue, *(hold.marks if hold else ())]

    def _activity(self) -> tuple[str, int, int] | None:
        """Changes with each submission. None: nobody may yield, or one is under way."""
        hold = self._device.hold
        if not hold or not self._may_yield(hold):
            return None
        board, holders = self._device.board.c, hold.holders()
        if any(
            lib.krex_in_flight(board, which, 0, p.block) for p in holders for which in (GATE, HEAVY)
        ):
            return None
        return hold.id, len(holders), sum(p.submissions() for p in holders)

    def _may_yield(self, hold: "Hold") -> bool:
        marks, waiting = hold.marks, self._device.queue or hold.siblings()
        automatic = marks and all(mark.is_automatic for mark in marks)
        return bool(hold.granted and hold.exclusive and automatic and waiting)

    async def _has_nothing_outstanding(self, hold: "Hold") -> bool:
        """Ask them all. A hold that has marks asks nobody to drain, so no such request is lost."""
        board, blocks = self._device.board.c, [p.block for p in hold.holders()]
        number = next(_numbers)
        for block in blocks:
            lib.krex_block_ask_idle(board, block, number)
        try:
            await until(
                lambda: all(lib.krex_block_is_idle(board, block, number) for block in blocks),
                ANSWER_S,
                "",
            )
        except Abort:
            return False
        else:
            return self._device.hold is hold
        finally:
            for block in blocks:
                lib.krex_block_idle_asked(board, block, number)

    def _yield(self, hold: "Hold") -> None:
        for mark in list(hold.marks):
            if mark.give_up():
                self._device.leave(mark)
