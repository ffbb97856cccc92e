# SPDX-License-Identifier: Apache-2.0
"""A hold: one period of exclusivity, from the handshake to the release. May serve several marks."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from krex.controller.board import GATE, HEAVY
from krex.native import lib
from krex.protect import cpu_time
from krex.record import Handshake, Siblings

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.device import Device
    from krex.controller.mark import Mark, Process

HEAVY_DEADLINE_S = 2.0
IN_FLIGHT_DEADLINE_S = 0.5
DRAIN_DEADLINE_S = 5.0
FREEZE_DEADLINE_S = 0.1
LEAVE_DRAIN_DEADLINE_S = 0.1
# What --max-wait leaves to each step at least: it is a limit on waiting for others, and a handshake
# with nobody in the way takes a moment too.
LEAST_STEP_S = 0.1
# Steps usually take less than this; asyncio's timers are no finer than a millisecond.
PATIENCE_S = 0.002
# On a CPU the cores are the device. A sibling that can't be frozen may still use so much of them:
# what its threads need to find the gate shut and to go to sleep at it.
CPU_SHARE, CPU_LEAST_S = 0.01, 50e-6
_ids = itertools.count(1)


class Abort(Exception):
    """A deadline was missed; the text is the record's reason."""


async def until(done: Callable[[], bool], limit_s: float, reason: str) -> None:
    """Wait for done(). Raises Abort(reason) after limit_s."""
    start = time.monotonic()
    while not done():
        waited = time.monotonic() - start
        if waited > limit_s:
            raise Abort(reason)
        if waited < PATIENCE_S:
            time.sleep(0.00005)  # noqa: ASYNC251
        else:
            await asyncio.sleep(0.001)


class Hold:
    """Closes the gate for the first of its marks, and opens it when the last has left."""

    def __init__(self, device: "Device", first: "Mark") -> None:
        self.device, self.board = device, device.board
        self.id = f"h-{os.getpid()}-{next(_ids)}"
        self.first = first
        self.marks = [first]
        self.left: list[Mark] = []  # their records wait for the end, which says if work was left
        self.granted = self.exclusive = False
        self._reason = ""  # why it is not exclusive
        self._handshake = Handshake()
        self._siblings_then: Siblings | UnsetType = UNSET
        self._freezing = False
        self._epoch = 0  # the closed one; 0: we have closed nothing
        self._frozen: list[Command] = []
        self._step_began = 0.0

    # What happens to it meanwhile.

    def takes(self, mark: "Mark") -> bool:
        """Whether a further mark may share it: one of the holder's, until the last has left."""
        return bool(self.marks) and mark.process is not None and self.covers(mark.process)

    def join(self, mark: "Mark") -> None:
        """A further mark of the holder."""
        self.marks.append(mark)
        if self.granted:
            self._answer(mark)

    def leave(self, mark: "Mark") -> None:
        """One of its marks ended."""
        if not mark.granted and not mark.record.reasons:
            mark.not_exclusive("left_while_waiting")
        self._check(mark)
        mark.complete()
        self.marks.remove(mark)
        self.left.append(mark)

    def covers(self, process: "Process") -> bool:
        """Whether the process belongs to the holder."""
        return self.first.covers(process)

    def registered(self, process: "Process") -> None:
        """A process joined the board: a late child of the holder gets the pass."""
        if self.covers(process):
            if self.marks:
                lib.krex_block_pass(self.board.c, process.block, self._epoch)
        else:
            self.started(process.command)

    def admitted(self, command: "Command") -> None:
        """A newcomer during a region is born frozen."""
        if self._freezing and command.group:
            command.group.freeze()
            self._frozen.append(command)

    def started(self, command: "Command") -> None:
        """A sibling runs, frozen or not: from now on its CPU time counts."""
        if self.granted and self._is_loose(command):
            new = cpu_time.snapshot([command.root_pid])
            for mark in self.marks:
                mark.cpu_at_grant = new | mark.cpu_at_grant

    def spoil(self, reason: str) -> None:
        """No mark that it serves now is exclusive any more."""
        for mark in self.marks:
            mark.not_exclusive(reason)

    # The steps.

    async def acquire(self) -> None:
        """DESIGN's handshake, in its order. Raises Abort; whatever was reached, `undo` undoes."""
        board = self.board.c
        epoch = self.board.epoch()
        if epoch & 1:
            raise Abort("gate_found_closed")
        self._step_began = time.monotonic()
        self._epoch = epoch + 1
        siblings = []
        for p in self.device.processes.values():
            if self.covers(p):
                lib.krex_block_pass(board, p.block, self._epoch)
            else:
                siblings.append(p)
        await self._close(HEAVY, epoch, HEAVY_DEADLINE_S, "heavy_call_running")
        self._step_done("heavy_s")
        await self._close(GATE, epoch, IN_FLIGHT_DEADLINE_S, "submission_in_flight")
        self._step_done("in_flight_s")
        dirty = [p for p in siblings if not lib.krex_block_clean(board, p.block)]
        await self._drain(dirty, *self._limit(DRAIN_DEADLINE_S, "sibling_not_drained"))
        self._step_done("drain_s")
        await self._freeze()
        self._step_done("freeze_s")
        if self.board.epoch() != self._epoch:
            raise Abort("lease_lost")
        if not self.marks:
            raise Abort("left_while_waiting")
        self._siblings_then = Siblings(
            processes=len(siblings),
            clean=len(siblings) - len(dirty),
            drained=len(dirty),
            commands_frozen=len(self._frozen),
            processes_not_frozen=sum(p.command.group is None for p in siblings),
        )
        if reason := self._noted_reason(self.first):
            raise Abort(reason)
        self.exclusive = True

    def refuse(self, reason: str) -> None:
        """It could not be acquired; whoever waits for it goes on without."""
        self._reason = reason
        self.undo()

    async def _close(self, which: int, epoch: int, limit_s: float, reason: str) -> None:
        if not self.board.swap(which, epoch):
            raise Abort("lease_lost")
        board = self.board.c
        await until(lambda: not lib.krex_in_flight(board, which, self._epoch, -1), limit_s, reason)

    async def _drain(self, processes: "list[Process]", limit_s: float, reason: str) -> None:
        board = self.board.c
        for p in processes:
            lib.krex_block_ask_drain(board, p.block, self._epoch)
        await until(
            lambda: all(
                self._is_gone(p) or lib.krex_block_drained(board, p.block, self._epoch)
                for p in processes
            ),
            limit_s,
            reason,
        )

    def _is_gone(self, process: "Process") -> bool:
        return self.device.processes.get(process.block) is not process

    def _limit(self, step_s: float, reason: str) -> tuple[float, str]:
        """How long a step may take, and the reason to give then: --max-wait may be shorter."""
        limit_s = self.first.command.max_wait_s
        if limit_s is None:
            return step_s, reason
        left_s = max(self.first.requested + limit_s - time.monotonic(), LEAST_STEP_S)
        return (left_s, "max_wait_exceeded") if left_s < step_s else (step_s, reason)

    async def _freeze(self) -> None:
        self._freezing = True
        self._frozen = [c for c in self._siblings() if c.group]
        groups = [c.group for c in self._frozen if c.group]
        for group in groups:
            group.freeze()
        await until(
            lambda: all(g.is_frozen() or g.is_empty() for g in groups),
            FREEZE_DEADLINE_S,
            "freeze_incomplete",
        )

    def _step_done(self, name: str) -> None:
        """Note how long it took, also for a handshake that fails later."""
        now = time.monotonic()
        taken = {name: now - self._step_began}
        self._handshake = replace(self._handshake, **taken)
        self._step_began = now

    def grant(self) -> None:
        """Answer all that wait."""
        self.granted = True
        for mark in list(self.marks):
            self._answer(mark)

    def _answer(self, mark: "Mark") -> None:
        record = mark.record
        if self._step_began:
            record.handshake, record.siblings = self._handshake, self._siblings_then
        if self.exclusive:
            record.exclusive, record.hold_id = True, self.id
            mark.cpu_at_grant = cpu_time.snapshot(self._loose_roots())
        else:
            mark.not_exclusive(self._reason)
        mark.answer()

    async def release(self) -> None:
        """The pass goes first, so that what drains is all there is."""
        began = time.monotonic()
        board = self.board.c
        holders = [p for p in self.device.processes.values() if self.covers(p)]
        for p in holders:
            lib.krex_block_pass(board, p.block, 0)
        lib.krex_gate_fence()
        deadline = time.monotonic() + LEAVE_DRAIN_DEADLINE_S
        left_work = False
        try:
            # Only then is all of it in the driver, and the drain's markers come after it.
            await until(lambda: not any(map(self._in_flight, holders)), LEAVE_DRAIN_DEADLINE_S, "")
            await self._drain(holders, deadline - time.monotonic(), "")
        except Abort:
            left_work = True  # the holder stays dirty: the next handshake drains it as a sibling
        self.undo()
        for mark in self.left:
            mark.record.work_at_end = left_work
            mark.record.release_s = time.monotonic() - began

    def _in_flight(self, process: "Process") -> bool:
        board, block = self.board.c, process.block
        return not self._is_gone(process) and lib.krex_in_flight(board, GATE, self._epoch, block)

    def undo(self) -> None:
        """Thaw and reopen, from whatever step was reached. Never fails half-way."""
        for command in self._frozen:
            if command.group:
                # A group that somebody removed has nothing left to thaw; the others do.
                with contextlib.suppress(OSError):
                    command.group.thaw()
        self._freezing, self._frozen = False, []
        for p in self.device.processes.values():
            lib.krex_block_pass(self.board.c, p.block, 0)
            lib.krex_block_ask_drain(self.board.c, p.block, 0)
        for which in (GATE, HEAVY):
            self.board.swap(which, self._epoch)
        self._epoch = 0

    # The verdict.

    def _check(self, mark: "Mark") -> None:
        """Before a mark's record is closed: was all of it certain?"""
        if not mark.record.exclusive:
            return
        if self.board.epoch() != self._epoch:
            mark.not_exclusive("lease_lost")
        if reason := self._noted_reason(mark) or self._cpu_reason(mark):
            mark.not_exclusive(reason)

    def _noted_reason(self, mark: "Mark") -> str | None:
        if self.device.unregistered:
            return "unregistered_process"
        if any(p.has_flag(lib.KREX_FLAG_UNLISTED) for p in self.device.processes.values()):
            return "unlisted_submission"
        return "context_on_other_device" if mark.uses_other_device() else None

    def _cpu_reason(self, mark: "Mark") -> str | None:
        """What siblings that could not be frozen did on a CPU."""
        roots = self._loose_roots()
        if not roots and not mark.cpu_at_grant:
            return None
        used = cpu_time.used_ns(mark.cpu_at_grant, cpu_time.snapshot(roots))
        if used is None:
            return "sibling_not_frozen"
        held_s = time.monotonic() - mark.granted
        return "sibling_ran" if used * 1e-9 > max(CPU_SHARE * held_s, CPU_LEAST_S) else None

    def _siblings(self) -> "Iterable[Command]":
        holder = self.first.command
        return [
            c for c in self.device.commands.values() if c.device is self.device and c is not holder
        ]

    def _is_loose(self, command: "Command") -> bool:
        return command.group is None and self.device.is_cpu and command in self._siblings()

    def _loose_roots(self) -> list[int]:
        return [c.root_pid for c in self._siblings() if self._is_loose(c) and c.root_pid]
