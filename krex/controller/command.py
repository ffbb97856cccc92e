# SPDX-License-Identifier: Apache-2.0
"""A command: a `krex run` and what is below it, or a process tree with only the shim preloaded."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from krex.protect.freezer import Group
from krex.record import RegionRecord

if TYPE_CHECKING:
    from krex.controller.device import Device
    from krex.controller.mark import Process


def _drop(_: RegionRecord) -> None:
    """Nobody listens (any more)."""


class Command:
    """What the controller knows of a command. `group` is None when it can't be frozen."""

    def __init__(self, id: str, tenant: str, argv: list[str], device: "Device") -> None:  # noqa: A002
        self.id, self.tenant, self.argv, self.device = id, tenant, argv, device
        self.exclusive = "region"
        self.max_hold_s: float | None = 30.0
        self.max_wait_s: float | None = None
        self.run_ended = False
        self.root_pid = 0
        self.group: Group | None = None
        self.opened: Callable[[RegionRecord], None] = _drop
        self.report: Callable[[RegionRecord], None] = _drop
        self._submissions_of_ended = 0

    def mute(self) -> None:
        """Its `krex run` is gone."""
        self.report = self.opened = _drop
        self.run_ended = True

    def processes(self) -> "list[Process]":
        """Those that are registered now."""
        return [p for p in self.device.processes.values() if p.command is self]

    def process_ended(self, process: "Process") -> None:
        """Keep what is known of it before its block is freed."""
        self._submissions_of_ended += process.submissions()

    def submissions(self) -> int:
        """How many all its processes made so far."""
        return self._submissions_of_ended + sum(p.submissions() for p in self.processes())
