# SPDX-License-Identifier: Apache-2.0
"""Who is beside a hold, by the device's own word: what LD_PRELOAD cannot see is seen there.

A process without our library, or one that passes it by, is on no board. It is on the device,
though, if it has a context there. What came and went between two looks is not seen.
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from krex.controller import strangers
from krex.controller.residents import ANSWER_S, FRESH_S, Resident
from krex.controller.waiting import Abort, until
from krex.record import ForeignProcess, ForeignProcesses

if TYPE_CHECKING:
    from krex.controller.device import Device

# In a record: a device that all of a machine may use can have hundreds.
MOST = 16


class Company:
    """Asks a hold's device at its start and at its end."""

    def __init__(self, device: "Device", is_holder: Callable[[int], bool]) -> None:
        """`is_holder` tells of a pid whether it has had the pass."""
        self._device, self._is_holder = device, is_holder
        self._start: _Look | None = None
        self._end: _Look | None = None

    def ask_at_start(self) -> None:
        """The siblings are drained, and from now on nobody but the holder may submit."""
        self._start = _Look(self._device, self._is_holder, FRESH_S)

    def ask_at_end(self) -> None:
        """The holder is drained, and the gate still shut."""
        self._end = _Look(self._device, self._is_holder)

    async def hear(self, *, shut: bool) -> None:
        """Wait for an answer to what was asked; a slow one is no reason to keep the gate shut."""
        last = self._end or self._start
        if last and (self._device.residents.is_quick or not shut):
            with contextlib.suppress(Abort):
                await until(last.question.done, ANSWER_S, "")
            self.reason_at_start()  # of those who are there now, and not only at the end

    def reason_at_start(self) -> str | None:
        """Why nothing that it serves is exclusive; to be asked again while it is not known."""
        return self._start.reason(self._left_running) if self._start else None

    def reason(self) -> str | None:
        """Why nothing that it served was exclusive, by both answers."""
        at_end = self._end.reason(self._submitted_meanwhile) if self._end else None
        return self.reason_at_start() or at_end

    def record(self) -> ForeignProcesses | UnsetType:
        """For the records."""
        start, end = (look.foreign if look else UNSET for look in (self._start, self._end))
        if start is UNSET and end is UNSET:
            return UNSET
        return ForeignProcesses(at_start=start, at_end=end)

    def _left_running(self) -> set[int]:
        """Who has work there: all siblings were drained."""
        there = (self._start.residents if self._start else None) or {}
        return {pid for pid, resident in there.items() if resident.running}

    def _submitted_meanwhile(self) -> set[int]:
        """Who submitted something since the start."""
        before = self._start.residents if self._start else None
        now = self._end.residents if self._end else None
        if before is None or now is None:
            return set()
        counts = {pid: r.submitted or 0 for pid, r in before.items()}
        return {pid for pid, r in now.items() if (r.submitted or 0) > counts.get(pid, 0)}


class _Look:
    """One question, and what to make of the answer; before that has come, nothing is known."""

    def __init__(
        self, device: "Device", is_holder: Callable[[int], bool], fresh_s: float = 0.0
    ) -> None:
        self._device, self._is_holder = device, is_holder
        self.question = device.residents.ask(device.known(), fresh_s)
        self._is_judged = False
        self._reason: str | None = None
        self.foreign: list[ForeignProcess] | UnsetType = UNSET

    @property
    def residents(self) -> dict[int, Resident] | None:
        """By pid. None: nobody knows."""
        found = self.question.residents if self.question.done() else None
        return None if found is None else {resident.pid: resident for resident in found}

    def reason(self, bypassing: Callable[[], set[int]]) -> str | None:
        """Why a region beside them is not exclusive.

        `bypassing` says who had something there that only the holder may have.
        It is judged once: who ends or registers later was there as what it was.
        """
        if not self._is_judged and self.question.done():
            self._is_judged = True
            self._reason = self._foreign_reason() or self._bypass_reason(bypassing())
        return self._reason

    def _foreign_reason(self) -> str | None:
        if self.residents is None:
            return None
        known = {*self.question.processes, *self._device.known()}
        owners = {p: strangers.owner(self._device, p) for p in self.residents if p not in known}
        self.foreign = [strangers.describe(*each) for each in list(owners.items())[:MOST]]
        for pid, command in owners.items():
            if command:
                strangers.tell_unregistered(self._device, command, pid)
        if any(owners.values()):
            return "unregistered_process"
        return "foreign_process" if owners else None

    def _bypass_reason(self, past: set[int]) -> str | None:
        past = {p for p in past | self.question.bypassing if not self._is_holder(p)}
        for pid in past:
            if command := strangers.owner(self._device, pid):
                strangers.tell_bypassing(self._device, command, pid)
        return "bypass" if past else None
