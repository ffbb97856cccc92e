# SPDX-License-Identifier: Apache-2.0
"""Marks: one marked phase each, from its request to its record."""

import abc
import asyncio
import itertools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from krex.controller.earlier import is_covered, take_in
from krex.controller.timing import Audit
from krex.native import lib
from krex.protect.cpu_time import Account
from krex.record import SCHEMA, SCHEMA_VERSION, RegionRecord

if TYPE_CHECKING:
    from krex.controller.command import Command

_ids = itertools.count(1)
_GRANTED = (lib.KREX_MARK_EXCLUSIVE, lib.KREX_MARK_SHARED)


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


class Process:
    """One registered client process."""

    def __init__(self, pid: int, block: int, command: "Command") -> None:
        self.pid, self.block, self.command = pid, block, command
        self.device = command.device
        self.regions = 0
        self.send_record: Callable[[RegionRecord], None] = self._report

    def _report(self, record: RegionRecord) -> None:
        """To whom the command reports at that moment: its `krex run` may be gone by then."""
        self.command.report(record)

    def submissions(self) -> int:
        """How many it made so far."""
        return int(lib.krex_block_submissions(self.device.board.c, self.block))

    def limit_wait_s(self) -> float:
        """How long it waited when a time limit of its own passed meanwhile, at most; 0: never."""
        return int(lib.krex_block_limit_wait_ns(self.device.board.c, self.block)) * 1e-9

    def has_flag(self, flag: int) -> bool:
        """Whether the shim set this flag (KREX_FLAG_*)."""
        return bool(lib.krex_block_flags(self.device.board.c, self.block) & flag)


class Mark(abc.ABC):
    """What a thread marked, or a whole command. The hold that serves it decides its verdict."""

    def __init__(self, command: "Command", pid: int, marker: str, name: str, index: int) -> None:
        self.command = command
        # A whole command's request is older than its place in the queue of regions.
        self.requested = self.queued = time.monotonic()
        self.granted = 0.0
        self.ended = False
        self.gave_way = False  # another was served before it, out of turn; once is enough
        self.yielded = False  # it ended so, and its thread may ask for the device with it again
        self.tid = 0  # the thread whose mark it is, by its process's own numbers
        self.cpu = Account()  # of siblings that are not frozen, from the grant on
        self._submissions_at_grant = 0
        self.record = RegionRecord(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            region_id=f"r-{os.getpid()}-{next(_ids)}",
            command=command.id,
            tenant=command.tenant,
            pid=pid,
            device=command.device.key,
            simulated=command.device.is_simulated,
            protect=command.protect,
            marker=marker,
            name=name,
            index=index,
            exclusive=False,
            reasons=[],
            wait_s=0.0,
            cpus=command.allotment.record,
        )

    def not_exclusive(self, reason: str) -> None:
        """Take exclusivity from it, or give a further reason why it has none."""
        self.record.exclusive = False
        if reason not in self.record.reasons:
            self.record.reasons.append(reason)

    def answer(self) -> None:
        """Let it go on, as the record's verdict stands. Does nothing if it did already, or left."""
        if self.ended or self.granted:
            return
        self.granted = time.monotonic()
        self.record.wait_s = self.granted - self.requested
        self._submissions_at_grant = self.submissions()
        if not self._let_go_on(self.record.exclusive):
            self.not_exclusive("began_without_grant")  # our lease had run out, or it left

    def complete(self) -> None:
        """Complete the record but for what the end of the hold says."""
        if self.granted:
            self.record.hold_s = time.monotonic() - self.granted
            self.record.submissions = self.submissions() - self._submissions_at_grant
        else:
            self.record.wait_s = time.monotonic() - self.requested
        self._look_at_timing()
        self._leave_board()

    def send(self) -> None:
        """Send the record to whoever wants it."""
        if self.command.refusals:  # the device may have been asked about them until now
            self.record.oom_while_shared = list(self.command.refusals)
        self._send()

    @property
    def is_automatic(self) -> bool:
        """Whether nobody wrote it into the program: it may begin again at any moment."""
        return False

    def end_idle(self, limit_s: Callable[[float | None], float]) -> bool:
        """End a mark of timed events that was idle for too long. False: it goes on, or isn't one.

        `limit_s` says how long that is, of a program with such gaps (None: it had none yet).
        """
        return False

    def give_up(self) -> bool:
        """Yield the device, if it is an automatic mark. False: it is none, or goes on."""
        return False

    @property
    @abc.abstractmethod
    def process(self) -> Process | None:
        """The process whose mark it is, if it is one's."""

    @abc.abstractmethod
    def began_already(self) -> bool:
        """Whether its thread went on without us, while our lease had run out."""

    @abc.abstractmethod
    def covers(self, process: Process) -> bool:
        """Whether this process belongs to the holder while this mark has the device."""

    @abc.abstractmethod
    def submissions(self) -> int:
        """How many were made so far by what it marks."""

    @abc.abstractmethod
    def uses_other_device(self) -> bool:
        """Whether what it marks has a context elsewhere too."""

    @abc.abstractmethod
    def _send(self) -> None:
        """Send the record."""

    @abc.abstractmethod
    def _let_go_on(self, exclusive: bool) -> bool:
        """Tell what waits for the grant; False: it did not wait."""

    @abc.abstractmethod
    def _look_at_timing(self) -> None:
        """Complete the record with what was counted of timed pairs."""

    @abc.abstractmethod
    def _leave_board(self) -> None:
        """Give back what it has on the board."""


class ThreadMark(Mark):
    """An outermost mark of a process's thread. Its state is a word in the process's block."""

    def __init__(
        self,
        process: Process,
        slot: int,
        name: str,
        tid: int,
        marker: str,
        before: "ThreadMark | None" = None,
    ) -> None:
        index = before.record.index if before else process.regions
        super().__init__(process.command, process.pid, marker, name, index)
        process.regions += before is None
        self._process, self.slot = process, slot
        self.tid = tid
        self._before = before  # itself, until it yielded; its record is part of ours
        # Of one that has yielded, and has not come back: its hold's end was told; its thread is out
        # of it. Its record is sent when both are true.
        self._is_told = self._is_over = False
        # By the thread itself: it submits on before we read that its region ended.
        self.submissions_at_end: int | None = None
        self._idle_since_s = 0.0  # it ended then, if it did so by being idle

    @property
    def is_automatic(self) -> bool:
        return self.record.marker != "explicit"

    @property
    def process(self) -> Process:
        return self._process

    def end_idle(self, limit_s: Callable[[float | None], float]) -> bool:
        board, block = self._process.device.board.c, self._process.block
        since_ns = int(lib.krex_mark_idle_since_ns(board, block, self.slot))
        if not since_ns:
            return False
        audit = Audit()
        audit.add(self._process, self.slot)
        usual_s = audit.gap_ns * 1e-9 if audit.gap_ns else None
        late = time.monotonic_ns() - since_ns > limit_s(usual_s) * 1e9
        if not late or not self._move(lib.KREX_MARK_IDLE, lib.KREX_MARK_LEAVING):
            return False
        self._idle_since_s = min(since_ns * 1e-9, time.monotonic())
        return True

    def ask_to_end(self) -> None:
        """Have a mark of timed events end at its next read-out."""
        for state in _GRANTED:
            self._move(state, lib.KREX_MARK_CLOSING)

    def give_up(self) -> bool:
        if not self.is_automatic:
            return False
        # One of timed events is not idle: something is recorded, and not read yet.
        ends = self.record.marker == "events"
        after = lib.KREX_MARK_LEAVING if ends else lib.KREX_MARK_YIELDED
        if not any(self._move(s, after) for s in (lib.KREX_MARK_EXCLUSIVE, lib.KREX_MARK_CLOSING)):
            return False
        self.yielded = not ends
        if ends:
            self.not_exclusive("yielded_idle")
        return True

    def comes_back(self, tid: int) -> "ThreadMark":
        """One that has yielded, and asks anew. It has one record of all its holds."""
        record = self.record
        again = ThreadMark(self._process, self.slot, record.name, tid, record.marker, self)
        again.record.region_id = record.region_id
        return again

    def finish(self, reason: str | None = None) -> None:
        """One that has yielded is over, and did not come back."""
        if not self.yielded or self._is_over:
            return
        self._is_over = True
        if reason:
            self.not_exclusive(reason)
        self._look_at_timing()
        if self._is_told:
            self.send()

    def send(self) -> None:
        if self._before and not self._is_told:
            take_in(self.record, self._before.record)  # whose hold ended before ours began
        self._is_told = True
        if not self.yielded or self._is_over:
            super().send()

    def began_already(self) -> bool:
        return self._move(lib.KREX_MARK_SHARED, lib.KREX_MARK_SHARED)

    def covers(self, process: Process) -> bool:
        # What descends from it is of its command. Looking up ancestors takes 20 us each.
        return process.command is self.command and descends(process.pid, self._process.pid)

    def submissions(self) -> int:
        if self.submissions_at_end is not None:
            return self.submissions_at_end
        return self._process.submissions()

    def uses_other_device(self) -> bool:
        return self._process.has_flag(lib.KREX_FLAG_OTHER_DEVICE)

    def _send(self) -> None:
        self._process.send_record(self.record)

    def _let_go_on(self, exclusive: bool) -> bool:
        state = lib.KREX_MARK_EXCLUSIVE if exclusive else lib.KREX_MARK_SHARED
        return self._move(lib.KREX_MARK_REQUESTED, state)

    def _leave_board(self) -> None:
        board, block = self._process.device.board.c, self._process.block
        longest = lib.krex_block_longest_wait_ns(board, block)
        self.record.longest_gate_wait_s = longest * 1e-9
        self.record.limit_wait_s = self._process.limit_wait_s() or UNSET
        if self.record.marker == "events":  # its end may be by our limit
            for state in (*_GRANTED, lib.KREX_MARK_CLOSING, lib.KREX_MARK_IDLE):
                self._move(state, lib.KREX_MARK_FREE)
        self._move(lib.KREX_MARK_LEAVING, lib.KREX_MARK_FREE)

    def _look_at_timing(self) -> None:
        audit, whole = Audit(), Audit()
        audit.add(self._process, self.slot)
        whole.add(self._process)
        self.record.timing = audit.timing(whole)
        had_several = self._is_over or (self._before and not self.yielded)
        if had_several and not is_covered(audit):
            self.not_exclusive("yielded_idle")
        if self._idle_since_s:
            self.record.hold_s = max(0.0, self._idle_since_s - self.granted)

    def _move(self, before: int, after: int) -> bool:
        board, block = self._process.device.board.c, self._process.block
        return bool(lib.krex_mark_move(board, block, self.slot, before, after))


def asking(
    before: ThreadMark | None, process: Process, slot: int, name: str, tid: int, marker: str
) -> ThreadMark:
    """The mark that asks for the device: another one than `before`, unless that has yielded."""
    if before and before.yielded and (before.record.name, before.record.marker) == (name, marker):
        return before.comes_back(tid)
    if before:  # its end never got here: our queue was full
        process.device.leave(before)
        before.finish()
    return ThreadMark(process, slot, name, tid, marker)


class CommandMark(Mark):
    """A whole command: it is answered before it starts, and ends when its `krex run` says so."""

    def __init__(self, command: "Command", pid: int, marker: str) -> None:
        super().__init__(command, pid, marker, "", 0)
        self.answered = asyncio.Event()

    @property
    def process(self) -> None:
        return None

    def began_already(self) -> bool:
        return False

    def covers(self, process: Process) -> bool:
        return process.command is self.command

    def submissions(self) -> int:
        return self.command.submissions()

    def uses_other_device(self) -> bool:
        return self.command.uses_other_device()

    def _send(self) -> None:
        self.command.report(self.record)

    def _let_go_on(self, exclusive: bool) -> bool:
        self.answered.set()
        return True

    def _look_at_timing(self) -> None:
        audit = self.command.audit()
        self.record.timing = audit.timing(audit)

    def _leave_board(self) -> None:
        """It has nothing there."""
