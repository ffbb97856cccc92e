# SPDX-License-Identifier: Apache-2.0
"""One device: its processes, the queue of marks, and the hold that serves the first of them."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from krex.controller.admission import Admission
from krex.controller.board import Board
from krex.controller.hold import Hold
from krex.controller.linger import Linger
from krex.controller.mark import CommandMark, Mark, Process
from krex.controller.residents import FRESH_S, Adapter, Nobody
from krex.controller.waiting import NOT_DRAINED, Abort, GiveWay
from krex.native import lib
from krex.protect.journal import Journal
from krex.protect.mappings import takes_part

if TYPE_CHECKING:
    from krex.controller.command import Command


# For a region that goes on without the device: what it has queued may wait for its host, which must
# not find the gate shut again at once.
HEAD_START_S = 0.05


def _at_once(_: float | None) -> float:
    return -math.inf


class Device:
    """Serves marks first come first served; one hold at a time."""

    def __init__(
        self, key: str, commands: "dict[str, Command]", slots: int, journal: Journal
    ) -> None:
        self.key = key
        self.is_cpu = key.startswith("cpu:")
        self.is_simulated = key.startswith("sim:")
        self.board = Board(key, lambda name: journal.note_board(name, key))
        self.admission = Admission(key, slots)
        self.processes: dict[int, Process] = {}  # by block
        self.commands = commands
        self.queue: list[Mark] = []
        self.hold: Hold | None = None
        self.unregistered = 0
        self._departed = 0  # of those, during the hold
        # Of a device that outlives its processes: calls back once it has nothing of one any more.
        self.when_gone: Callable[[int, Callable[[], None]], None] | None = None
        self.when_acquired: Callable[[], None] = lambda: None  # whether or not it succeeded
        self.departing: set[int] = set()  # processes that ended, and may have work there still
        self.orphans: list[tuple[str, int]] = []  # (board of a dead controller, pid)
        self.residents: Adapter = Nobody()
        self.linger = Linger(self)
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._serve())

    # Requests, from the server.

    def enter(self, mark: Mark) -> None:
        """A mark asks for the device; a holder's process shares the hold it has, or will have."""
        self.linger.entered(mark)
        if self.hold and self.hold.takes(mark):
            self.hold.join(mark)
        else:
            if not (self.hold or self.residents.is_quick):  # the end of a hold asks too
                self.residents.ask(self.known(), FRESH_S)
            self.queue.append(mark)
            limit_s = mark.command.max_wait_s
            if limit_s is not None:
                asyncio.get_running_loop().call_later(limit_s, self._waited_enough, mark)
        self._changed.set()

    def _waited_enough(self, mark: Mark) -> None:
        """Its time is up, unless it is its turn by now: then the handshake looks at the limit."""
        its_turn = self.queue[:1] == [mark] and not (self.hold and self.hold.marks)
        if mark in self.queue and not its_turn:
            self.queue.remove(mark)
            mark.not_exclusive("max_wait_exceeded")
            mark.answer()

    def leave(self, mark: Mark, reason: str | None = None) -> None:
        """A mark ends, by itself, by its process's death or by its limit."""
        if mark.ended:
            return
        mark.ended = True
        self.linger.left(mark)
        if mark in self.queue:
            self.queue.remove(mark)
            reason = reason or "left_while_waiting"
        if reason:
            mark.not_exclusive(reason)
        if self.hold and mark in self.hold.marks:
            self.hold.leave(mark)
        else:
            mark.complete()
            mark.send()
        self._changed.set()

    def joined(self, process: Process) -> None:
        """A process registered."""
        self.processes[process.block] = process
        # After an exec: what its old program had goes with that, and what it has now is drained.
        self.departing.discard(process.pid)
        if self.hold:
            self.hold.registered(process)

    def known(self) -> list[int]:
        """The processes that are registered, or were and may still have something there."""
        return [*(p.pid for p in self.processes.values()), *self.departing]

    def refused(self) -> None:
        """A process uses the device without a block: no region beside it is certain."""
        self.unregistered += 1
        if self.hold:
            self.hold.spoil("unregistered_process")

    def has_orphans(self) -> bool:
        """Whether processes use the device that nobody gates: their controller died."""
        self.orphans = [(board, pid) for board, pid in self.orphans if takes_part(pid, board)]
        # One that was forked in there has the old board mapped, and is registered with us.
        registered = {p.pid for p in self.processes.values()} if self.orphans else set()
        return any(pid not in registered for _, pid in self.orphans)

    def departed(self) -> None:
        """Such a process ended: the next region may be certain again; not this one."""
        if self.hold:
            self._departed += 1
        else:
            self.unregistered -= 1

    def gone(self, process: Process, marks: Iterable[Mark]) -> None:
        """A process died: its marks end, those without a hold too; its block is free."""
        for mark in marks:
            self.leave(mark, None if mark.end_idle(_at_once) else "process_died")
        if self.hold and process.has_flag(lib.KREX_FLAG_UNLISTED):
            self.hold.spoil("unlisted_submission")
        if self.when_gone:
            self.departing.add(process.pid)
            self.when_gone(process.pid, lambda: self.departing.discard(process.pid))
        process.command.process_ended(process)
        del self.processes[process.block]
        lib.krex_block_free(self.board.c, process.block)

    def admitted(self, command: "Command") -> None:
        """A command is about to start here."""
        if self.hold:
            self.hold.admitted(command)

    def started(self, command: "Command") -> None:
        """A command's first process runs."""
        if self.hold:
            self.hold.started(command)

    def busy_with(self, command: "Command") -> bool:
        """Whether processes or records of this command are still on their way."""
        held = [*self.hold.marks, *self.hold.left] if self.hold else []
        waits = command.questions or any(m.command is command for m in self.queue + held)
        return bool(command.processes() or waits)

    # The hold.

    def keep_lease(self) -> None:
        """Promise again to be alive; a hold that was broken meanwhile is given up."""
        self.board.lease()
        if self.hold and not self.hold.is_certain():
            self._changed.set()

    def close(self) -> None:
        """The controller ends: nothing stays shut or frozen."""
        self._task.cancel()
        self.linger.close()
        self.residents.close()
        if self.hold:
            self.hold.undo()

    async def _serve(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self.queue:
                first = self.queue.pop(0)
                if first.began_already():
                    first.answer()  # nothing is to be frozen for it
                    continue
                self.hold = Hold(self, first)
                # Threads and children that asked together are served together: they may wait for
                # each other inside.
                for mark in list(filter(self.hold.takes, self.queue)):
                    self.queue.remove(mark)
                    self.hold.join(mark)
                try:
                    await self._serve_hold(self.hold)
                except Exception as failure:  # noqa: BLE001 - the device must not stay shut
                    reason = f"controller_error: {failure!r}"
                    self.hold.spoil(reason)
                    self.hold.refuse(reason)
                    self.hold.grant()
                for mark in self.hold.left:
                    mark.send()
                goes_on_without = self.hold.reason == NOT_DRAINED
                self.hold = None
                self.unregistered -= self._departed
                self._departed = 0
                if goes_on_without:
                    await asyncio.sleep(HEAD_START_S)

    async def _serve_hold(self, hold: Hold) -> None:
        first = hold.first
        try:
            if first.command.exclusive == "none":
                raise Abort("exclusive_none")
            await hold.acquire()
        except GiveWay as way:
            self._put_back(hold, way.mark)
            return
        except Abort as failure:
            hold.refuse(str(failure))
        hold.grant()
        if hold.exclusive:
            # A command that is one region has no limit of its own: it ends when it ends.
            whole = isinstance(first, CommandMark)
            await self._until_left(hold, None if whole else first.command.max_hold_s)
            await hold.release()

    def _put_back(self, hold: Hold, behind: Mark) -> None:
        """A hold that has not begun comes after the one of this mark."""
        hold.undo()
        hold.first.gave_way = True
        self.queue.remove(behind)
        self.queue[:0] = [behind, *hold.marks]

    async def _until_left(self, hold: Hold, limit_s: float | None) -> None:
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while hold.marks or self._lingers(hold):
            self._changed.clear()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            left = left if hold.marks else self.linger.left_s(hold)
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except (TimeoutError, asyncio.TimeoutError):  # two before Python 3.11
                for late in list(hold.marks):
                    self.leave(late, "max_hold_exceeded")
            if not hold.is_certain():
                for late in list(hold.marks):
                    self.leave(late, "lease_lost")

    def _lingers(self, hold: Hold) -> bool:
        """Whether to keep it without a mark, for the command's next one."""
        hold.lingers = hold.is_certain() and self.linger.left_s(hold) > 0
        return hold.lingers
