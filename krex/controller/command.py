# SPDX-License-Identifier: Apache-2.0
"""A command: a `krex run` and what is below it, or a process tree with only the shim preloaded."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from krex.controller.cores import without
from krex.controller.reports import Report
from krex.controller.timing import Audit
from krex.native import lib
from krex.protect import pipes
from krex.protect.freezer import Group
from krex.protect.pin import Pinning
from krex.protect.processes import below, members
from krex.record import MemoryRefusal, RegionRecord

if TYPE_CHECKING:
    from krex.controller.device import Device
    from krex.controller.mark import Process


def _drop(_: object) -> None:
    """Nobody listens (any more)."""


class Command:
    """What the controller knows of a command. `group` is None when it can't be frozen."""

    def __init__(self, id: str, tenant: str, argv: list[str], device: "Device") -> None:  # noqa: A002
        self.id, self.tenant, self.argv, self.device = id, tenant, argv, device
        self.exclusive = "region"
        self.protect = "freeze"  # what its regions do to its siblings
        self.memory = 0  # bytes of the device that are reserved for it
        self.simulated = False  # it was given a simulated device, which its programs are to find
        self.device_lost = False  # what it has on its device is of no more use
        self.max_hold_s: float | None = 30.0
        self.max_wait_s: float | None = None
        self.uid = -1  # the user who may claim to belong to it
        self.run_ended = False
        self.root_pid = 0
        self.started: float | None = None  # when; CLOCK_MONOTONIC
        self.group: Group | None = None
        # Of its `krex run`, and of its processes as far as we have looked at them.
        self.stdio = pipes.Ends()
        self.opened: Callable[[RegionRecord], object] = _drop
        self.report: Callable[[RegionRecord], None] = _drop
        self.notice: Callable[[str], object] = _drop  # a process of it runs unprotected, and why
        # Likewise, and it does not say so itself; of which processes that was said.
        self.warn: Callable[[str], object] = _drop
        self.told: set[int] = set()
        # About it, to its device: it is not over before they are answered.
        self.questions: set[asyncio.Task[None]] = set()
        self.refusals: list[MemoryRefusal] = []  # memory that it did not get beside others
        self.out_of_memory: Callable[[str], object] = _drop  # of the first of them
        # Its report's file, for records that come when its `krex run` was killed.
        self.last_resort: Report | None = None
        self._submissions_of_ended = 0
        self._limit_wait_of_ended_s = 0.0
        self._audit_of_ended = Audit()
        self._ended_used_other_device = False
        self.allotment = without(device.key)
        self.pinning = Pinning()  # for all its holds
        self.is_looked_at = False  # see pins.look_again

    def mute(self, *, was_killed: bool) -> None:
        """Its `krex run` is gone; if it ended as it should, so did the report."""
        self.report = self.opened = self.notice = self.warn = self.out_of_memory = _drop
        if was_killed and self.last_resort:
            self.report = self.last_resort.write
        self.run_ended = True

    def close(self) -> None:
        """Nothing of it is left: let go of the report's file."""
        self.last_resort, self.report = None, _drop

    def look_at_stdio(self, pid: int) -> None:
        """Note what the standard streams of this process are connected to."""
        self.stdio = self.stdio.union(pipes.of([pid]))

    def pids(self) -> set[int]:
        """All its processes, registered or not."""
        return self._inside() | self._below()

    def members(self) -> set[int]:
        """The same, as its group knows them: quicker, and without those that left it."""
        return self._inside() if self.group else self._below()

    def _inside(self) -> set[int]:
        return members(self.group.path) if self.group and not self.group.removed else set()

    def _below(self) -> set[int]:
        return below([self.root_pid] if self.root_pid else [])

    def processes(self) -> "list[Process]":
        """Those that are registered now."""
        return [p for p in self.device.processes.values() if p.command is self]

    def process_ended(self, process: "Process") -> None:
        """Keep what is known of it before its block is freed."""
        self._submissions_of_ended += process.submissions()
        self._limit_wait_of_ended_s = max(self._limit_wait_of_ended_s, process.limit_wait_s())
        self._audit_of_ended.add(process)
        self._ended_used_other_device |= process.has_flag(lib.KREX_FLAG_OTHER_DEVICE)

    def uses_other_device(self) -> bool:
        """Whether one of its processes has, or had, a context on a device that is not its own."""
        return self._ended_used_other_device or any(
            p.has_flag(lib.KREX_FLAG_OTHER_DEVICE) for p in self.processes()
        )

    def submissions(self) -> int:
        """How many all its processes made so far."""
        return self._submissions_of_ended + sum(p.submissions() for p in self.processes())

    def limit_wait_s(self) -> float:
        """Its longest wait in which a time limit of its own passed; 0: there was none."""
        return max(self._limit_wait_of_ended_s, *(p.limit_wait_s() for p in self.processes()), 0.0)

    def audit(self) -> Audit:
        """What all its processes counted of timed pairs so far."""
        found = Audit()
        found.add_all(self._audit_of_ended)
        for process in self.processes():
            found.add(process)
        return found
