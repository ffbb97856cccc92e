# SPDX-License-Identifier: Apache-2.0
"""Tickets for making a context: one at a time on the machine, none while a region is acquired."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from krex.controller.mark import Process
from krex.native import lib

# A ticket that is out for longer is taken for returned: its process hangs, or waits for something
# else. Half of what a client waits at most (shim/ticket.c), so that the next one gets its turn.
LIMIT_S = 5.0


class _Ticket(NamedTuple):
    """By the number that its process gave it."""

    process: Process
    number: int


class Tickets:
    """Hands them out first come first served. Nobody keeps one beyond its process's end."""

    def __init__(self, may_begin: Callable[[], bool]) -> None:
        """Begin with none out. `may_begin`: may one be handed out now? Call `look` when it may."""
        self._may_begin = may_begin
        self._waiting: deque[_Ticket] = deque()
        self._out: _Ticket | None = None
        self._limit: asyncio.TimerHandle | None = None

    def ask(self, process: Process, number: int) -> None:
        """A process wants one."""
        self._waiting.append(_Ticket(process, number))
        self.look()

    def give_back(self, process: Process, number: int) -> None:
        """It returns one, or waits for it no longer. One that is unknown by now is no trouble."""
        self._drop(lambda ticket: ticket == (process, number))

    def forget(self, process: Process) -> None:
        """A process ended, with all its tickets."""
        self._drop(lambda ticket: ticket.process is process)

    def look(self) -> None:
        """Hand out the next one, if it is time."""
        if self._out or not self._waiting or not self._may_begin():
            return
        self._out = self._waiting.popleft()
        process, number = self._out
        self._limit = asyncio.get_running_loop().call_later(LIMIT_S, self.give_back, *self._out)
        lib.krex_block_give_ticket(process.device.board.c, process.block, number)

    def _drop(self, fits: Callable[[_Ticket], bool]) -> None:
        self._waiting = deque(ticket for ticket in self._waiting if not fits(ticket))
        if self._out and fits(self._out):
            self._out = None
            if self._limit:
                self._limit.cancel()
        self.look()
