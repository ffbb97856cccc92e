# SPDX-License-Identifier: Apache-2.0
"""A hold's threads on the reserved CPUs: pinned before its grant, given back at its end."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from krex.native import ffi, lib
from krex.protect import pin
from krex.record import Cores

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.mark import Mark, Process

# A fork that was under way at the release shows its child by then, or by one of the next looks.
LOOK_AGAIN_S = 0.25


class Pins:
    """What one hold pins. Does nothing, and looks at nothing, where there is no slice."""

    def __init__(self, command: "Command") -> None:
        self._command, self._allotment = command, command.allotment
        # With --protect gate nobody is promised any cores.
        self._is_off = command.protect == "gate"
        self._active = False
        self._wanted: set[int] = set()
        self._pinned: set[int] = set()
        self._failed = 0
        self._record = self._allotment.record

    @property
    def wanted(self) -> bool:
        """Whether there are CPUs to pin anything to, and it is to be done."""
        return self._allotment.part is not None and not self._is_off

    def record(self) -> Cores:
        """What the holder's records say of it so far."""
        return self._record

    def pin(self, processes: "Iterable[Process]", marks: "Iterable[Mark]") -> None:
        """Pin the threads of these processes that ever submitted, and those of these marks."""
        if not self.wanted:
            return
        self._active = True
        wanted = {process.pid: _submitting(process) for process in processes}
        for mark in marks:
            if mark.process:
                wanted.setdefault(mark.process.pid, set()).update(_thread_of(mark))
        self._pin(wanted)

    def join(self, mark: "Mark") -> None:
        """Pin the thread of a further mark, if the others are."""
        if self._active and mark.process:
            self._pin({mark.process.pid: _thread_of(mark)})

    def restore(self) -> None:
        """Give back what was pinned; what it created gets its creator's CPUs. Never fails."""
        if not self._active:
            return
        self._active = False
        with contextlib.suppress(Exception):  # the gate has still to be opened
            done = self._command.pinning.restore(_members(self._command))
            self._record = replace(
                self._record, changed=len(done.changed), guessed=len(done.guessed)
            )
        look_again(self._command)

    def widened(self, running: "Iterable[Command]") -> bool:
        """Whether a thread of the holder's command, or of these, may run on the reserved CPUs.

        Those that are there because of a pin are not meant.
        """
        reserved = set(self._allotment.reserved)
        if not reserved or self._is_off:
            return False
        return any(
            reserved.intersection(stray.cpus)
            for command in (self._command, *running)
            if command.allotment.cpus
            for stray in pin.strays(command.members(), command.allotment.cpus, command.pinning)
        )

    def _pin(self, wanted: dict[int, set[int]]) -> None:
        """All together: where they go depends on how many they are."""
        assert self._allotment.part
        left = {tid for tid in self._wanted if pin.mask_of(tid) is not None}
        self._wanted = left.union(*wanted.values())
        cpus = self._allotment.part.room_for(len(self._wanted))
        for pid, tids in wanted.items() if cpus else ():
            done = self._command.pinning.pin(pid, cpus or (), tids)
            self._pinned.update(done.pinned)
            self._failed += len(done.failed)
        notes = set(self._record.notes or ()) | (set() if cpus else {"too_many_threads"})
        self._record = replace(
            self._record,
            notes=sorted(notes),
            pinned=len(self._pinned),
            pin_failed=self._failed,
        )


def look_again(command: "Command") -> None:
    """Soon, and until nothing can carry a pin any more; once at a time."""
    if not (command.is_looked_at or command.pinning.settled):
        command.is_looked_at = True
        asyncio.get_running_loop().call_later(LOOK_AGAIN_S, _look, command)


def _look(command: "Command") -> None:
    command.is_looked_at = False
    with contextlib.suppress(OSError):
        command.pinning.sweep(_members(command))
    look_again(command)


def _members(command: "Command") -> Callable[[], Iterable[int]] | None:
    """For Pinning: without a group it looks among the descendants of what it pinned."""
    return command.members if command.group else None


def _submitting(process: "Process") -> set[int]:
    """The threads of a process that have a word on the board."""
    tids = ffi.new("int32_t[]", lib.KREX_WORDS)
    count = lib.krex_block_tids(process.device.board.c, process.block, tids)
    return _here(process.pid, list(tids[0:count]))


def _thread_of(mark: "Mark") -> set[int]:
    return _here(mark.process.pid, [mark.tid]) if mark.process and mark.tid else set()


def _here(pid: int, tids: list[int]) -> set[int]:
    """Threads of a process, of which it told its own numbers, by ours; only those that are left."""
    if _shares_numbers(pid):
        return set(pin.threads(pid)).intersection(tids)
    return set(pin.tids_here(pid, tids))


def _shares_numbers(pid: int) -> bool:
    """Whether it is in our pid namespace."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # it ended, or may not be looked at: its NSpid line tells all the same
        return False
