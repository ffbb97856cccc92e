# SPDX-License-Identifier: Apache-2.0
"""Who may run on a device: so many commands at once as it has slots, or one alone."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from krex.controller.forecast import UNKNOWN, Durations, Occupant, play
from krex.controller.standing import Standing

if TYPE_CHECKING:
    from krex.controller.command import Command

DEFAULT_SLOTS = 16


class Applicant:
    """A command that waits to be let in, and to have `memory` bytes of the device reserved."""

    def __init__(
        self,
        command: "Command",
        alone: bool,
        let_in: Callable[[bool], None],
        tell: Callable[[Standing], None],
        memory: int = 0,
    ) -> None:
        self.command, self.alone, self.let_in, self.tell = command, alone, let_in, tell
        self.memory = memory
        self.requested = time.monotonic()


class _Inside:
    """A command that has a slot."""

    def __init__(self, *, asked: bool, alone: bool = False, memory: int = 0) -> None:
        self.asked, self.alone, self.memory = asked, alone, memory
        self.started: float | None = None


class Admission:
    """First come first served: nobody overtakes, so nobody waits for ever.

    Only `krex run` commands wait. A process tree with only the library preloaded takes its slot
    when it makes its first context, and cannot be held back then: there may be more of them than
    slots. They keep newcomers waiting like anyone, but who is to be alone does not wait for them,
    and they do not wait for it: the gate stops them.
    """

    def __init__(
        self, device: str, slots: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.slots = slots
        self.memory: int | None = None  # bytes that the device has; None: nobody knows
        self.waiting: list[Applicant] = []
        self._device, self._clock = device, clock
        self._inside: dict[Command, _Inside] = {}
        self._durations = Durations()

    @property
    def used(self) -> int:
        """How many slots are taken; more than there are if preloaded trees took them."""
        return len(self._inside)

    @property
    def load(self) -> int:
        """How many commands are inside, or wait to be let in."""
        return len(self._inside) + len(self.waiting)

    @property
    def commands(self) -> "list[Command]":
        """Those commands."""
        return [*self._inside, *(applicant.command for applicant in self.waiting)]

    def reserved(self, command: "Command") -> int:
        """How many bytes are reserved for a command that is inside."""
        return self._inside[command].memory if command in self._inside else 0

    def has_room(self, memory: int) -> bool:
        """Whether so many bytes are not reserved yet; True if nobody knows how many there are."""
        taken = sum(inside.memory for inside in self._inside.values())
        return self.memory is None or taken + memory <= self.memory

    async def enter(
        self,
        command: "Command",
        alone: bool,
        tell: Callable[[Standing], None],
        limit_s: float | None,
        memory: int = 0,
    ) -> bool:
        """Wait for this command's turn; True if it is alone, as it asked.

        `tell` is called whenever it may stand elsewhere in the queue. A command that wants to be
        alone gives up that wish after limit_s, but not its place. Cancelled, it has left.
        """
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()

        def let_in(is_alone: bool) -> None:
            if not turn.done():  # else it is cancelled, and about to leave
                turn.set_result(is_alone)

        applicant = self.apply(command, alone, let_in, tell, memory)
        if alone and limit_s is not None:
            loop.call_later(limit_s, self.give_up, applicant)
        try:
            return await turn
        except asyncio.CancelledError:
            self.leave(command)  # it may have been let in this very moment
            raise

    def apply(
        self,
        command: "Command",
        alone: bool,
        let_in: Callable[[bool], None],
        tell: Callable[[Standing], None],
        memory: int = 0,
    ) -> Applicant:
        """Queue a command. `let_in` is called once, maybe at once, with whether it is alone."""
        applicant = Applicant(command, alone, let_in, tell, memory)
        self.waiting.append(applicant)
        self._settle()
        return applicant

    def take(self, command: "Command") -> None:
        """A preloaded tree made its first context: it has a slot, whether or not one is free."""
        self._inside[command] = _Inside(asked=False)
        self._settle()

    def started(self, command: "Command") -> None:
        """A command that was let in runs: from now on its duration counts."""
        if command in self._inside:
            self._inside[command].started = self._clock()

    def leave(self, command: "Command") -> None:
        """The command ended, or nobody waits for it any more."""
        self.waiting = [a for a in self.waiting if a.command is not command]
        inside = self._inside.pop(command, None)
        if inside and inside.started is not None:
            self._durations.add(self._clock() - inside.started)
        self._settle()

    def give_up(self, applicant: Applicant) -> None:
        """It has waited long enough to be alone; now it takes its turn as others do."""
        applicant.alone = False
        self._settle()

    def standings(self) -> list[tuple[Applicant, Standing]]:
        """Those who wait, in the order in which they will be let in."""
        expected = self._expected()
        found, alone_before = [], False
        for place, applicant in enumerate(self.waiting, 1):
            why = self._why(applicant, alone_before)
            standing = Standing(place, len(self.waiting), why, expected[place - 1])
            found.append((applicant, standing))
            alone_before = alone_before or applicant.alone
        return found

    def _settle(self) -> None:
        while self.waiting and self._may_enter(self.waiting[0]):
            applicant = self.waiting.pop(0)
            self._inside[applicant.command] = _Inside(
                asked=True, alone=applicant.alone, memory=applicant.memory
            )
            applicant.let_in(applicant.alone)
        if self.waiting:
            for applicant, standing in self.standings():
                applicant.tell(standing)

    def _may_enter(self, applicant: Applicant) -> bool:
        if self.used >= self.slots or not self.has_room(applicant.memory):
            return False
        asked = [inside for inside in self._inside.values() if inside.asked]
        return not asked if applicant.alone else not any(inside.alone for inside in asked)

    def _why(self, applicant: Applicant, alone_before: bool) -> str:
        if any(inside.alone for inside in self._inside.values()):
            return "a command has the device for itself (--exclusive command)"
        if applicant.alone:
            return "the device is not free of other commands yet"
        if alone_before:
            return "a command before it is to have the device for itself (--exclusive command)"
        if self.used < self.slots and not self.has_room(applicant.memory):
            return f"too much of the memory of {self._device} is reserved (--mem)"
        if self.slots == 1:
            return f"the only slot of {self._device} is taken"
        return f"all {self.slots} slots of {self._device} are taken"

    def _expected(self) -> list[float | None]:
        now = self._clock()
        inside = [
            Occupant(self._left_s(i, now) if i.asked else UNKNOWN, i.asked, i.alone)
            for i in self._inside.values()
        ]
        # Behind who waits for memory too, nothing is known: that may be all that it waits for.
        known = list(itertools.takewhile(lambda applicant: not applicant.memory, self.waiting))
        wishes = [applicant.alone for applicant in known]
        found = play(inside, self.slots, wishes, self._durations.left(0.0))
        return [*found, *([None] * (len(self.waiting) - len(known)))]

    def _left_s(self, inside: _Inside, now: float) -> float:
        return self._durations.left(now - inside.started if inside.started is not None else 0.0)
