# SPDX-License-Identifier: Apache-2.0
"""Who may run on a device: everybody together, or one command alone (`--exclusive command`)."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from krex.controller.command import Command


class Applicant:
    """A command that waits to be let in."""

    def __init__(self, command: "Command", alone: bool, tell: Callable[[int, str], None]) -> None:
        self.command, self.alone, self.tell = command, alone, tell
        self.requested = time.monotonic()
        self.turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.told = 0


class Admission:
    """First come first served: nobody overtakes, so nobody waits for ever.

    Only `krex run` commands stand here. A process tree with only the library preloaded can't be
    made to wait before it starts; the gate stops it.
    """

    def __init__(self) -> None:
        self.waiting: list[Applicant] = []
        self._inside: dict[Command, bool] = {}  # alone?

    async def enter(
        self, command: "Command", tell: Callable[[int, str], None], limit_s: float | None
    ) -> bool:
        """Wait for this command's turn; True if it is alone, as it asked for with `command`.

        `tell` gets the place in the queue, from 1, and why. A command that wants to be alone gives
        up that wish after limit_s, but not its place. Leave also if this is cancelled.
        """
        applicant = Applicant(command, command.exclusive == "command", tell)
        self.waiting.append(applicant)
        self._settle()
        if applicant.alone and limit_s is not None:
            asyncio.get_running_loop().call_later(limit_s, self._give_up, applicant)
        return await applicant.turn

    def leave(self, command: "Command") -> None:
        """The command ended, or nobody waits for it any more."""
        self.waiting = [a for a in self.waiting if a.command is not command]
        self._inside.pop(command, None)
        self._settle()

    def _give_up(self, applicant: Applicant) -> None:
        applicant.alone = False
        self._settle()

    def _settle(self) -> None:
        while self.waiting and self._may_enter(self.waiting[0]):
            applicant = self.waiting.pop(0)
            self._inside[applicant.command] = applicant.alone
            if not applicant.turn.done():
                applicant.turn.set_result(applicant.alone)
        for place, applicant in enumerate(self.waiting, 1):
            if applicant.told != place:
                applicant.told = place
                applicant.tell(place, self._why(applicant))

    def _may_enter(self, applicant: Applicant) -> bool:
        return not self._inside if applicant.alone else True not in self._inside.values()

    def _why(self, applicant: Applicant) -> str:
        if applicant.alone:
            return "the device is not free of other commands yet"
        return "a command has the device, or is to have it, for itself (--exclusive command)"
