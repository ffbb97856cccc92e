# SPDX-License-Identifier: Apache-2.0
"""A hold: one period of exclusivity, from the handshake to the release. May serve several marks."""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from krex.controller.board import GATE, HEAVY
from krex.controller.company import Company
from krex.controller.pins import Pins
from krex.controller.waiting import NOT_DRAINED, PATIENCE_S, Abort, GiveWay, until
from krex.controller.watch import Watch
from krex.native import lib
from krex.protect import together
from krex.record import Handshake, Siblings
from krex.stops import stop_at

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.device import Device
    from krex.controller.mark import Mark, Process

HEAVY_DEADLINE_S = 2.0
# For what is in flight, and then for the drain. A submission may stand in the driver until work
# before it is done (the launch queue is full, its code has to be loaded): it has as long as that.
DRAIN_DEADLINE_S = 5.0
FREEZE_DEADLINE_S = 0.1
# For a sibling's work that may wait for that sibling's host, which waits for its own turn.
GIVE_WAY_S = 0.1
LEAVE_DRAIN_DEADLINE_S = 0.1
# What --max-wait leaves to each step at least: it is a limit on waiting for others, and a handshake
# with nobody in the way takes a moment too.
LEAST_STEP_S = 0.1
# On a CPU the cores are the device. A sibling that can't be frozen may still use so much of them:
# what its threads need to find the gate shut and to go to sleep at it.
CPU_SHARE, CPU_LEAST_S = 0.01, 50e-6
_ids = itertools.count(1)


class Hold:
    """Closes the gate for the first of its marks, and opens it when the last has left."""

    def __init__(self, device: "Device", first: "Mark") -> None:
        self.device, self.board = device, device.board
        self.id = f"h-{os.getpid()}-{next(_ids)}"
        self.first = first
        self.marks = [first]
        self.left: list[Mark] = []  # their records wait for the end, which says if work was left
        self.granted = self.exclusive = False
        self.lingers = False  # the last mark has left, and the holder's next one may still join
        self.reason = ""  # why it is not exclusive
        self._handshake = Handshake()
        self._siblings_then: Siblings | UnsetType = UNSET
        self._freezing = False
        self._spoiled = ""  # why
        self._holders: set[int] = set()  # all that ever had the pass
        self._epoch = 0  # the closed one; 0: we have closed nothing
        self._lapses = 0
        self._frozen: list[Command] = []
        self._asked: list[Process] = []  # to drain
        self._running: set[Command] = set()  # thawed for the holder's sake
        self._watch = Watch(self)
        self._pins = Pins(first.command)
        self._company = Company(device, self._holders.__contains__)
        self._step_began = 0.0

    # What happens to it meanwhile.

    def takes(self, mark: "Mark") -> bool:
        """Whether a further mark may share it: one of the holder's, until the last has left."""
        is_kept = bool(self.marks) or self.lingers
        return is_kept and mark.process is not None and self.covers(mark.process)

    def join(self, mark: "Mark") -> None:
        """A further mark of the holder."""
        self.marks.append(mark)
        self._pins.join(mark)
        if self.granted:
            self._answer(mark)

    def leave(self, mark: "Mark") -> None:
        """One of its marks ended."""
        if not mark.granted and not mark.record.reasons:
            mark.not_exclusive("left_while_waiting")
        now_ns = time.monotonic_ns()
        self._check(mark)
        if mark.record.granted_ns:
            mark.record.released_ns = now_ns
        mark.complete()
        self.marks.remove(mark)
        self.left.append(mark)

    def covers(self, process: "Process") -> bool:
        """Whether the process belongs to the holder."""
        return self.first.covers(process)

    def _covered(self) -> "list[Process]":
        """The processes that do, now."""
        return [p for p in self.first.command.processes() if self.covers(p)]

    def registered(self, process: "Process") -> None:
        """A process joined the board: a late child of the holder gets the pass."""
        if self.covers(process):
            if self.marks or self.lingers:
                self._holders.add(process.pid)
                lib.krex_block_pass(self.board.c, process.block, self._epoch)
        else:
            self.started(process.command)

    def admitted(self, command: "Command") -> None:
        """A newcomer during a region is born frozen, unless the holder may wait for it."""
        if self._freezing and command.group and not self._shares_pipe(command):
            command.group.freeze()
            self._frozen.append(command)
        else:
            if not self._freezes:
                self._count("commands_left_running")
            self.started(command)

    def started(self, command: "Command") -> None:
        """A sibling runs, frozen or not: from now on its CPU time counts."""
        if self.granted and command in self._loose():
            for mark in self.marks:
                self._count_cpu(mark, [command])

    def holders(self) -> "list[Process]":
        """The processes that have the pass, or had it."""
        return [p for p in self.device.processes.values() if p.pid in self._holders]

    def frozen(self) -> "list[Command]":
        """The commands that stand still for it now."""
        return list(self._frozen)

    def let_run(self, command: "Command", counter: str) -> None:
        """Thaw a sibling before the end. It stays gated, and its CPU time counts.

        `counter` is the key of the record's siblings that counts it.
        """
        if command not in self._frozen or not command.group:
            return
        self._frozen.remove(command)
        self._running.add(command)
        self.started(command)
        with contextlib.suppress(OSError):  # it ended
            command.group.thaw()
        self._count(counter)

    def _count(self, counter: str) -> None:
        """One more of what this key of the record's siblings counts."""
        then = self._siblings_then
        if isinstance(then, Siblings):
            self._siblings_then = replace(then, **{counter: getattr(then, counter) + 1})
        for mark in self.marks:
            mark.record.siblings = self._siblings_then

    def spoil(self, reason: str) -> None:
        """No mark that it serves now is exclusive any more."""
        self._spoiled = reason
        for mark in self.marks:
            mark.not_exclusive(reason)

    # The steps.

    @property
    def _freezes(self) -> bool:
        """Whether siblings stand still for it, or are only kept off the device."""
        return self.first.command.protect == "freeze"

    async def acquire(self) -> None:
        """DESIGN's handshake, in its order. Raises Abort; whatever was reached, `undo` undoes."""
        board = self.board.c
        alone = self._freezes or self.first.command.exclusive == "command"
        if self.device.is_cpu and not alone:
            raise Abort("protect_too_low")
        self.board.lease()  # before anything is closed: it may be overdue
        self._lapses = self.board.lapses
        epoch = self.board.epoch()
        if epoch & 1:
            raise Abort("gate_found_closed")
        self._step_began = time.monotonic()
        self._epoch = epoch + 1
        for p in self._covered():
            self._holders.add(p.pid)
            lib.krex_block_pass(board, p.block, self._epoch)
        try:
            await self._close(HEAVY, epoch, HEAVY_DEADLINE_S, "heavy_call_running")
        except Abort as failure:
            if str(failure) == "heavy_call_running" and lib.krex_long_open(board, self._epoch):
                raise Abort("capture_open") from None
            raise
        self._step_done("heavy_s")
        began = time.monotonic()
        await self._close(GATE, epoch, *self._limit(DRAIN_DEADLINE_S, "submission_in_flight"))
        stop_at("in-flight-zero")
        self._step_done("in_flight_s")
        # Only now: who registered until the gate was shut may have submitted.
        siblings = [p for p in self.device.processes.values() if p.pid not in self._holders]
        dirty = list(filter(self._is_dirty, siblings))
        left_s = DRAIN_DEADLINE_S - (time.monotonic() - began)
        await self._drain(dirty, *self._limit(left_s, NOT_DRAINED))
        stop_at("drained")
        self._step_done("drain_s")
        self._company.ask_at_start()
        if self._freezes:
            self._begin_freeze()
        # Meanwhile they come to stand still, on the other cores.
        self._siblings_then = self._describe(siblings, len(dirty))
        if reason := self._noted_reason(self.first):
            raise Abort(reason)
        await self._company.hear(shut=True)
        if self._freezes:
            await self._await_frozen()
            stop_at("frozen")
            self._step_done("freeze_s")
        self._pin()
        stop_at("before-grant")
        self._look()
        self.exclusive = True

    def _describe(self, siblings: "list[Process]", dirty: int) -> Siblings:
        commands = self.siblings()
        return Siblings(
            processes=len(siblings),
            clean=len(siblings) - dirty,
            drained=dirty,
            commands_frozen=len(self._frozen),
            commands_sharing_a_pipe=len(list(filter(self._shares_pipe, commands))),
            commands_thawed_for_a_lock=0,
            commands_thawed_for_a_signal=0,
            processes_not_frozen=sum(p.command.group is None for p in siblings),
            commands_left_running=0 if self._freezes else len(commands),
        )

    def _pin(self) -> None:
        """The holder's submitting threads, if there are CPUs to pin them to."""
        if self._pins.wanted:
            self._pins.pin(self._covered(), self.marks)
            stop_at("pinned")
            self._step_done("pin_s")

    def refuse(self, reason: str) -> None:
        """It could not be acquired, or kept; whoever waits for it goes on without."""
        self.exclusive = False
        self.reason = reason
        self.undo()

    async def _close(self, which: int, epoch: int, limit_s: float, reason: str) -> None:
        if not self.board.swap(which, epoch):
            raise Abort("no_membarrier" if self.board.barrier_failed else "lease_lost")
        stop_at("heavy-closed" if which == HEAVY else "gate-closed")
        board = self.board.c
        await self._until(
            lambda: not lib.krex_in_flight(board, which, self._epoch, -1), limit_s, reason
        )

    async def _until(self, done: Callable[[], bool], limit_s: float, reason: str) -> None:
        """The same as `until`, but a handshake that has become pointless is given up at once."""

        def looked_and_done() -> bool:
            self._look()
            return done()

        await until(looked_and_done, limit_s, reason)

    def _look(self) -> None:
        """While the handshake lasts: may it go on, and is there somebody to grant it to?"""
        if not self.granted and not self.is_certain():
            raise Abort("lease_lost")
        if not self.granted and not self.marks:
            raise Abort("left_while_waiting")
        if not self.granted and self._spoiled:
            raise Abort(self._spoiled)

    def is_certain(self) -> bool:
        """Whether the gate is as we closed it, and nobody had a reason to open it or to thaw."""
        return self.board.epoch() in {self._epoch, self._epoch - 1} and self.board.kept(
            self._lapses
        )

    async def _drain(self, processes: "list[Process]", limit_s: float, reason: str) -> None:
        """Raises GiveWay too, in a handshake."""
        board, began = self.board.c, time.monotonic()
        self._asked += processes
        for p in processes:
            lib.krex_block_ask_drain(board, p.block, self._epoch)
        stop_at("drain-asked")

        def drained() -> bool:
            left = list(filter(self._is_outstanding, processes))
            if left and not self.granted and time.monotonic() - began > GIVE_WAY_S:
                self._give_way(left)
            return not left and not self.device.departing

        await self._until(drained, limit_s, reason)

    def _is_outstanding(self, process: "Process") -> bool:
        drained = lib.krex_block_drained(self.board.c, process.block, self._epoch)
        return not (drained or self._is_gone(process))

    def _give_way(self, processes: "list[Process]") -> None:
        """Raise GiveWay if one of these waits for its turn: its work may wait for its own host.

        As that of harnesses whose kernels spin until the host has queued all that is timed.
        """
        for mark in self.device.queue:
            if mark.process in processes and not self.first.gave_way:
                raise GiveWay(mark)

    def _is_dirty(self, process: "Process") -> bool:
        return not lib.krex_block_clean(self.board.c, process.block)

    def _is_gone(self, process: "Process") -> bool:
        return self.device.processes.get(process.block) is not process

    def _limit(self, step_s: float, reason: str) -> tuple[float, str]:
        """How long a step may take, and the reason to give then: --max-wait may be shorter."""
        limit_s = self.first.command.max_wait_s
        if limit_s is None:
            return step_s, reason
        left_s = max(self.first.queued + limit_s - time.monotonic(), LEAST_STEP_S)
        return (left_s, "max_wait_exceeded") if left_s < step_s else (step_s, reason)

    def _begin_freeze(self) -> None:
        self._freezing = True
        self._frozen = [c for c in self.siblings() if c.group and not self._shares_pipe(c)]
        together.freeze(c.group for c in self._frozen if c.group)
        stop_at("freezing")

    async def _await_frozen(self) -> None:
        running = [c.group for c in self._frozen if c.group]
        running = together.await_frozen(running, PATIENCE_S)

        def all_stand_still() -> bool:
            nonlocal running
            running = together.await_frozen(running, 0)
            return not running

        await self._until(all_stand_still, FREEZE_DEADLINE_S, "freeze_incomplete")

    def _step_done(self, name: str) -> None:
        """Note how long it took, also for a handshake that fails later."""
        now = time.monotonic()
        setattr(self._handshake, name, now - self._step_began)
        self._step_began = now

    def grant(self) -> None:
        """Answer all that wait."""
        self.granted = True
        for mark in list(self.marks):
            self._answer(mark)
        if self._freezing:
            self._watch.start()
        self.device.when_acquired()
        stop_at("granted")

    def _answer(self, mark: "Mark") -> None:
        record = mark.record
        if self._step_began:
            record.handshake, record.siblings = self._handshake, self._siblings_then
        if self.exclusive:
            record.exclusive, record.hold_id = True, self.id
            record.granted_ns = time.monotonic_ns()
            record.cpus = self._pins.record()
            self._count_cpu(mark, self._loose())
        else:
            mark.not_exclusive(self.reason)
        mark.answer()

    async def release(self) -> None:
        """The pass goes first, so that what drains is all there is."""
        began = time.monotonic()
        stop_at("leaving")
        board = self.board.c
        holders = self._covered()
        for p in holders:
            lib.krex_block_pass(board, p.block, 0)
        lib.krex_gate_fence()
        stop_at("pass-removed")
        deadline = time.monotonic() + LEAVE_DRAIN_DEADLINE_S
        left_work = False
        try:
            # Only then is all of it in the driver, and the drain's markers come after it. Who
            # submitted nothing has nothing to wait for.
            await until(lambda: not any(map(self._in_flight, holders)), LEAVE_DRAIN_DEADLINE_S, "")
            dirty = list(filter(self._is_dirty, holders))
            await self._drain(dirty, deadline - time.monotonic(), "")
        except Abort:
            left_work = True  # the holder stays dirty: the next handshake drains it as a sibling
        stop_at("holder-drained")
        released_ns = time.monotonic_ns()
        self._company.ask_at_end()
        await self._company.hear(shut=True)
        certain = self.is_certain() and not self._spoiled and not self._outsiders()
        self.undo()
        opened = time.monotonic()
        await self._company.hear(shut=False)
        reason = self._company.reason()
        for mark in self.left:
            if reason:
                mark.not_exclusive(reason)
            if certain and mark.record.exclusive:
                mark.record.released_ns = released_ns
            if mark.record.granted_ns:
                mark.record.holder_pids = sorted(self._holders)
            mark.record.work_at_end = left_work
            if left_work and mark.yielded:  # it was not idle: what it times may reach beyond
                mark.not_exclusive("yielded_idle")
            mark.record.foreign_processes = self._company.record()
            mark.record.cpus = self._pins.record()
            mark.record.release_s = opened - began

    def _in_flight(self, process: "Process") -> bool:
        board, block = self.board.c, process.block
        return not self._is_gone(process) and lib.krex_in_flight(board, GATE, self._epoch, block)

    def undo(self) -> None:
        """Thaw and reopen, from whatever step was reached. Never fails half-way."""
        self._watch.stop()
        together.thaw(c.group for c in self._frozen if c.group)
        self._freezing, self._frozen = False, []
        stop_at("thawed")
        self._pins.restore()
        for p in self.device.processes.values():
            lib.krex_block_pass(self.board.c, p.block, 0)
        for p in self._asked:  # no others: it wakes them
            lib.krex_block_ask_drain(self.board.c, p.block, 0)
        self._asked = []
        for which in (GATE, HEAVY):
            self.board.swap(which, self._epoch)
        self._epoch = 0
        stop_at("reopened")

    # The verdict.

    def _check(self, mark: "Mark") -> None:
        """Before a mark's record is closed: was all of it certain?"""
        if not mark.record.exclusive:
            return
        if not self.is_certain():
            mark.not_exclusive("lease_lost")
        if any(c.group and c.group.was_thawed() for c in self._frozen):
            mark.not_exclusive("sibling_thawed")
        reason = self._noted_reason(mark) or self._cpu_reason(mark)
        if reason := reason or self._company.reason_at_start():
            mark.not_exclusive(reason)

    def _outsiders(self) -> str | None:
        """Whether somebody may submit whom the gate does not stop."""
        if self.device.unregistered or self.device.has_orphans():
            return "unregistered_process"
        if any(p.has_flag(lib.KREX_FLAG_UNLISTED) for p in self.device.processes.values()):
            return "unlisted_submission"
        return None

    def _noted_reason(self, mark: "Mark") -> str | None:
        if mark.command.device_lost:
            return "device_lost"
        if reason := self._outsiders():
            return reason
        if self._pins.widened(c for c in self.siblings() if c not in self._frozen):
            return "affinity_widened"
        return "context_on_other_device" if mark.uses_other_device() else None

    def _cpu_reason(self, mark: "Mark") -> str | None:
        """What siblings that were not frozen did on a CPU."""
        roots = [c.root_pid for c in self._loose() if not c.group and c.root_pid]
        if not roots and not mark.cpu:
            return None
        used = mark.cpu.used_ns(roots)
        if used is None:
            return "sibling_not_frozen"
        held_s = time.monotonic() - mark.granted
        return "sibling_ran" if used * 1e-9 > max(CPU_SHARE * held_s, CPU_LEAST_S) else None

    def siblings(self) -> "list[Command]":
        """The commands that stand still for it, or may wait at the gate."""
        holder, device = self.first.command, self.device
        return [c for c in device.commands.values() if c.device is device and c is not holder]

    def _shares_pipe(self, command: "Command") -> bool:
        """Whether the holder may wait for a sibling to write, or to read what it writes."""
        return command.group is not None and self.first.command.stdio.joined(command.stdio)

    def _loose(self) -> "list[Command]":
        """The siblings that are not frozen where what they run on is the device."""
        siblings = self.siblings() if self.device.is_cpu else ()
        return [c for c in siblings if not c.group or c in self._running or self._shares_pipe(c)]

    @staticmethod
    def _count_cpu(mark: "Mark", commands: "Iterable[Command]") -> None:
        for command in commands:
            if command.group:
                mark.cpu.add_group(command.group)
            elif command.root_pid:
                mark.cpu.add_trees([command.root_pid])
