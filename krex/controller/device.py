# SPDX-License-Identifier: Apache-2.0
"""One device: its processes, the queue of marks, and the hold that serves the first of them."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from krex.controller.board import GATE, HEAVY, Board
from krex.native import lib
from krex.record import SCHEMA, SCHEMA_VERSION, RegionRecord, Siblings

if TYPE_CHECKING:
    from krex.controller.command import Command

HEAVY_DEADLINE_S = 2.0
IN_FLIGHT_DEADLINE_S = 0.5
DRAIN_DEADLINE_S = 5.0
FREEZE_DEADLINE_S = 0.1
LEAVE_DRAIN_DEADLINE_S = 0.1
# Steps usually take less than this; asyncio's timers are no finer than a millisecond.
PATIENCE_S = 0.002
_ids = itertools.count(1)


class Process:
    """One registered client process."""

    def __init__(self, pid: int, block: int, command: "Command", device: "Device") -> None:
        self.pid, self.block, self.command, self.device = pid, block, command, device
        self.regions = 0
        self.send_record: Callable[[RegionRecord], None] = command.report


class Mark:
    """One outermost mark of a process's thread, from its request to its record."""

    def __init__(self, process: Process, slot: int, name: str) -> None:
        self.process, self.slot = process, slot
        self.requested = time.monotonic()
        self.granted = 0.0
        self.submissions = 0
        self.ended = False
        process.regions += 1
        self.record = RegionRecord(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            region_id=f"r-{os.getpid()}-{next(_ids)}",
            command=process.command.id,
            tenant=process.command.tenant,
            pid=process.pid,
            device=process.device.key,
            marker="explicit",
            name=name,
            index=process.regions - 1,
            exclusive=False,
            reasons=[],
            wait_s=0.0,
        )


class Abort(Exception):
    """The handshake missed a deadline; the text is the record's reason."""


def parent_of(pid: int) -> int:
    """The parent's pid, 0 if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def descends(pid: int, ancestor: int) -> bool:
    """Whether pid is ancestor or below it."""
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parent_of(pid)
    return False


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


class Device:
    """Serves marks first come first served; one hold at a time."""

    def __init__(self, key: str, commands: "dict[str, Command]") -> None:
        self.key = key
        self.board = Board(key)
        self.processes: dict[int, Process] = {}  # by block
        self.commands = commands
        self.queue: list[Mark] = []
        self.holding: list[Mark] = []
        self.holder_pid = 0
        self.hold_id = ""
        self.unregistered = 0
        self._granted = False
        self._unsent: list[Mark] = []
        self._epoch = 0
        self._frozen: list[Command] = []
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._serve())

    # Requests, from the server.

    def enter(self, mark: Mark) -> None:
        """A mark asks for the device; a holder's process shares the hold it has, or will have."""
        mark.process.command.opened(mark.record)
        if self.holding and descends(mark.process.pid, self.holder_pid):
            self.holding.append(mark)
            if self._granted:
                self._answer(mark, self.holding[0].record)
        else:
            self.queue.append(mark)
            limit_s = mark.process.command.max_wait_s
            if limit_s is not None:
                asyncio.get_running_loop().call_later(limit_s, self._waited_enough, mark)
        self._changed.set()

    def _waited_enough(self, mark: Mark) -> None:
        if mark in self.queue:
            self.queue.remove(mark)
            mark.record.reasons.append("max_wait_exceeded")
            self._answer(mark, mark.record)

    def leave(self, mark: Mark, reason: str | None = None) -> None:
        """A mark ends, by itself, by its process's death or by its limit."""
        if mark.ended:
            return
        mark.ended = True
        if mark in self.queue:
            self.queue.remove(mark)
            reason = reason or "left_while_waiting"
        if reason:
            self._not_exclusive(mark, reason)
        self._close_record(mark)
        if mark in self.holding:
            self.holding.remove(mark)
            self._unsent.append(mark)  # the hold's end says whether work was left
        else:
            mark.process.send_record(mark.record)
        self._changed.set()

    def joined(self, process: Process) -> None:
        """A process registered: a late child of the holder gets the pass."""
        self.processes[process.block] = process
        if self.holding and descends(process.pid, self.holder_pid):
            lib.krex_block_pass(self.board.c, process.block, self._epoch)
        elif self._runs_loose(process.command):
            self._spoil("sibling_not_frozen")

    def busy_with(self, command: "Command") -> bool:
        """Whether processes or records of this command are still on their way."""
        marks = (m.process for m in self.holding + self.queue + self._unsent)
        return any(p.command is command for p in (*self.processes.values(), *marks))

    def refused(self) -> None:
        """A process uses the device without a block: no region beside it is certain."""
        self.unregistered += 1
        self._spoil("unregistered_process")

    def gone(self, process: Process) -> None:
        """A process died: its marks end, its block is free."""
        del self.processes[process.block]
        for mark in [m for m in self.queue + self.holding if m.process is process]:
            self.leave(mark, "process_died")
        lib.krex_block_free(self.board.c, process.block)

    def admitted(self, command: "Command") -> None:
        """A newcomer during a region is born frozen."""
        if not (self.holding and self._granted):
            return
        if command.group:
            command.group.freeze()
            self._frozen.append(command)
        elif self._runs_loose(command):
            self._spoil("sibling_not_frozen")

    def _runs_loose(self, command: "Command") -> bool:
        """Whether it would run during a region. On a CPU the cores are the device."""
        if command.device is not self or command.group or not self.key.startswith("cpu:"):
            return False
        return not self.holding or command is not self.holding[0].process.command

    def _spoil(self, reason: str) -> None:
        for mark in self.holding:
            self._not_exclusive(mark, reason)

    def _not_exclusive(self, mark: Mark, reason: str) -> None:
        mark.record.exclusive = False
        if reason not in mark.record.reasons:
            mark.record.reasons.append(reason)

    # The hold.

    async def _serve(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self.queue:
                self.holding = [self.queue.pop(0)]
                try:
                    await self._hold(self.holding[0])
                except Exception as failure:  # noqa: BLE001 - the device must not stay shut
                    for mark in list(self.holding):
                        self._not_exclusive(mark, f"controller_error: {failure!r}")
                        self._answer(mark, mark.record)
                    self._undo()
                self._end_hold()

    async def _hold(self, mark: Mark) -> None:
        self.holder_pid = mark.process.pid
        self.hold_id = f"h-{os.getpid()}-{next(_ids)}"
        try:
            if mark.process.command.exclusive == "none":
                raise Abort("exclusive_none")
            await self._acquire(mark)
            mark.record.exclusive = True
        except Abort as failure:
            self._undo()
            self._not_exclusive(mark, str(failure))
        self._granted = True
        for waiting in list(self.holding):
            self._answer(waiting, mark.record)
        if mark.record.exclusive:
            await self._until_left(mark.process.command.max_hold_s)
            await self._release()

    async def _until_left(self, limit_s: float | None) -> None:
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while self.holding:
            self._changed.clear()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                for late in list(self.holding):
                    self.leave(late, "max_hold_exceeded")

    def _end_hold(self) -> None:
        for mark in self._unsent:
            mark.process.send_record(mark.record)
        self._unsent, self.holding, self._granted, self.holder_pid = [], [], False, 0

    def _holders(self) -> list[Process]:
        return [p for p in self.processes.values() if descends(p.pid, self.holder_pid)]

    async def _acquire(self, mark: Mark) -> None:
        """DESIGN's handshake, in its order. Raises Abort."""
        board, steps = self.board.c, {}
        clock = time.monotonic
        start = clock()

        def step(name: str) -> None:
            nonlocal start
            now = clock()
            steps[name] = now - start
            start = now

        epoch = self.board.epoch()
        if epoch & 1:
            raise Abort("gate_found_closed")
        self._epoch = epoch + 1
        holders = self._holders()
        siblings = [p for p in self.processes.values() if p not in holders]
        for p in holders:
            lib.krex_block_pass(board, p.block, self._epoch)
        if not self.board.swap(HEAVY, epoch):
            raise Abort("lease_lost")
        await until(
            lambda: not lib.krex_in_flight(board, HEAVY, self._epoch, -1),
            HEAVY_DEADLINE_S,
            "heavy_call_running",
        )
        step("heavy_s")
        if not self.board.swap(GATE, epoch):
            raise Abort("lease_lost")
        await until(
            lambda: not lib.krex_in_flight(board, GATE, self._epoch, -1),
            IN_FLIGHT_DEADLINE_S,
            "submission_in_flight",
        )
        step("in_flight_s")
        dirty = [p for p in siblings if not lib.krex_block_clean(board, p.block)]
        for p in dirty:
            lib.krex_block_ask_drain(board, p.block, self._epoch)
        await until(
            lambda: all(
                self.processes.get(p.block) is not p
                or lib.krex_block_drained(board, p.block, self._epoch)
                for p in dirty
            ),
            DRAIN_DEADLINE_S,
            "sibling_not_drained",
        )
        step("drain_s")
        await self._freeze(mark.process.command)
        step("freeze_s")
        if self.board.epoch() != self._epoch:
            raise Abort("lease_lost")
        mark.record.handshake = steps
        mark.record.siblings = Siblings(
            processes=len(siblings),
            clean=len(siblings) - len(dirty),
            drained=len(dirty),
            commands_frozen=len(self._frozen),
            processes_not_frozen=sum(p.command.group is None for p in siblings),
        )
        if mark.ended:
            raise Abort("left_while_waiting")
        if any(self._runs_loose(c) for c in self.commands.values()):
            raise Abort("sibling_not_frozen")
        self._check_notes(mark)

    def _check_notes(self, mark: Mark) -> None:
        if self.unregistered:
            raise Abort("unregistered_process")
        for p in self.processes.values():
            if lib.krex_block_flags(self.board.c, p.block) & lib.KREX_FLAG_UNLISTED:
                raise Abort("unlisted_submission")
        flags = lib.krex_block_flags(self.board.c, mark.process.block)
        if flags & lib.KREX_FLAG_OTHER_DEVICE:
            raise Abort("context_on_other_device")

    async def _freeze(self, holder: "Command") -> None:
        self._frozen = [
            c for c in self.commands.values() if c.device is self and c is not holder and c.group
        ]
        groups = [c.group for c in self._frozen if c.group]
        for group in groups:
            group.freeze()
        await until(
            lambda: all(g.is_frozen() or g.is_empty() for g in groups),
            FREEZE_DEADLINE_S,
            "freeze_incomplete",
        )

    async def _release(self) -> None:
        """The pass goes first, so that what drains is all there is."""
        board = self.board.c
        holders = [p for p in self._holders() if self.processes.get(p.block) is p]
        for p in holders:
            lib.krex_block_pass(board, p.block, 0)
        lib.krex_gate_fence()
        for p in holders:
            lib.krex_block_ask_drain(board, p.block, self._epoch)
        try:
            await until(
                lambda: all(
                    self.processes.get(p.block) is not p
                    or (
                        not lib.krex_in_flight(board, GATE, self._epoch, p.block)
                        and lib.krex_block_drained(board, p.block, self._epoch)
                    )
                    for p in holders
                ),
                LEAVE_DRAIN_DEADLINE_S,
                "work_at_end",
            )
            left_work = False
        except Abort:
            left_work = True  # the holder stays dirty: the next handshake drains it as a sibling
        for mark in self._unsent:
            mark.record.work_at_end = left_work
        self._undo()

    def _undo(self) -> None:
        """Thaw and reopen, from whatever step was reached. Never fails half-way."""
        for command in self._frozen:
            if command.group:
                # A group that somebody removed has nothing left to thaw; the others do.
                with contextlib.suppress(OSError):
                    command.group.thaw()
        self._frozen = []
        for p in self.processes.values():
            lib.krex_block_pass(self.board.c, p.block, 0)
            lib.krex_block_ask_drain(self.board.c, p.block, 0)
        for which in (GATE, HEAVY):
            self.board.swap(which, self._epoch)
        self._epoch = 0

    def _answer(self, mark: Mark, like: RegionRecord) -> None:
        """Let the mark's thread go on, with the verdict and the handshake of `like`."""
        if mark.ended or mark.granted:
            return
        block = mark.process.block
        mark.granted = time.monotonic()
        mark.record.wait_s = mark.granted - mark.requested
        mark.submissions = lib.krex_block_submissions(self.board.c, block)
        if like is not mark.record:
            mark.record.exclusive, mark.record.reasons = like.exclusive, list(like.reasons)
            mark.record.handshake, mark.record.siblings = like.handshake, like.siblings
        if mark.record.exclusive:
            mark.record.hold_id = self.hold_id
        state = lib.KREX_MARK_EXCLUSIVE if mark.record.exclusive else lib.KREX_MARK_SHARED
        if not lib.krex_mark_move(self.board.c, block, mark.slot, lib.KREX_MARK_REQUESTED, state):
            self._not_exclusive(mark, "began_without_grant")  # our lease had run out, or it left

    def _close_record(self, mark: Mark) -> None:
        """Complete the record but for work_at_end, and free the mark's word."""
        board, block, record = self.board.c, mark.process.block, mark.record
        if mark.granted:
            record.hold_s = time.monotonic() - mark.granted
            record.submissions = lib.krex_block_submissions(board, block) - mark.submissions
        else:
            record.wait_s = time.monotonic() - mark.requested
        record.longest_gate_wait_s = lib.krex_block_longest_wait_ns(board, block) * 1e-9
        if record.exclusive and self.board.epoch() != self._epoch:
            self._not_exclusive(mark, "lease_lost")
        if record.exclusive:
            try:
                self._check_notes(mark)
            except Abort as failure:
                self._not_exclusive(mark, str(failure))
        lib.krex_mark_move(board, block, mark.slot, lib.KREX_MARK_LEAVING, lib.KREX_MARK_FREE)
