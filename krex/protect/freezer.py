# SPDX-License-Identifier: Apache-2.0
"""cgroup v2 groups, one a command, and their freeze files."""

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple


def cgroup_of(process: str | int = "self") -> Path | None:
    """The cgroup v2 directory of a process, as we see it; None where we can't, or it is gone."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        mount = next((Path(f[1]) for f in map(str.split, mounts) if f[2] == "cgroup2"), None)
        lines = Path("/proc", str(process), "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if mount and line.startswith("0::/") and not line.startswith("0::/.."):
            return mount / line[4:]
    return None


def find_base(process: str | int = "self") -> Path | None:
    """The cgroup v2 directory in which groups can be made, a process's own (its pid), or None."""
    base = cgroup_of(process)
    return base if base and os.access(base, os.W_OK) else None


def outside(cgroup: Path) -> Path:
    """Where a group of a process in `cgroup` belongs: never inside that of another command."""
    for path in (cgroup, *cgroup.parents):
        if path.name.startswith("krex-c-"):
            cgroup = path.parent
    return cgroup


class Stillness(NamedTuple):
    """How often and how long a group stood still, with the freeze that is under way."""

    times: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0
    ago_s: float | None = None  # since the last thaw; 0 while it stands still


class Group:
    """One command's group: made here, frozen and thawed here, removed when it is empty."""

    def __init__(self, path: Path) -> None:
        """Make the group. Raises OSError."""
        path.mkdir()
        self.path = path
        self.frozen = self.removed = False
        # Of the freezes that are over; the times are CLOCK_MONOTONIC.
        self._freezes = 0
        self.frozen_s = self._longest_s = 0.0
        self._since = self._thawed = 0.0
        self._let_run = False
        self._cpu_ns: int | None = None
        self._freeze = os.open(path / "cgroup.freeze", os.O_RDWR | os.O_CLOEXEC)
        self._events = os.open(path / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)

    def freeze(self) -> None:
        """Ask for the freeze; `is_frozen` says when it is reached (about 0.1 ms later)."""
        if not self.frozen and not self.removed:
            os.pwrite(self._freeze, b"1", 0)
            self.note_freeze(time.monotonic())

    def thaw(self) -> None:
        """Let the group run. Does nothing if this object has not frozen it."""
        if self.frozen:
            if not self.removed:  # then the descriptor is somebody else's
                os.pwrite(self._freeze, b"0", 0)
            self.note_thaw(time.monotonic())

    def note_freeze(self, now: float) -> None:
        """It is asked to stand still, from `now` (CLOCK_MONOTONIC) on."""
        self.frozen, self._since = True, now

    def note_thaw(self, now: float) -> None:
        """It runs again."""
        self.frozen, self._thawed = False, now
        lasted_s = now - self._since
        self._freezes += 1
        self.frozen_s += lasted_s
        self._longest_s = max(self._longest_s, lasted_s)

    def stillness(self) -> Stillness:
        """How often and how long it stood still so far."""
        now = time.monotonic()
        lasts_s = now - self._since if self.frozen else 0.0
        ago_s = 0.0 if self.frozen else now - self._thawed
        return Stillness(
            self._freezes + self.frozen,
            self.frozen_s + lasts_s,
            max(self._longest_s, lasts_s),
            ago_s if self.frozen or self._freezes else None,
        )

    def was_thawed(self) -> bool:
        """Whether somebody else let the group run, since we froze it last."""
        if self.frozen and not self.removed:
            try:
                self._let_run = os.pread(self._freeze, 1, 0) != b"1"
            except OSError:
                self._let_run = True  # somebody else removed it, and nobody knows when it ran
        return self.frozen and self._let_run

    @property
    def freeze_fd(self) -> int:
        """The freeze file, open for writing: for the `krex run` that thaws it should we die."""
        return self._freeze

    @property
    def events_fd(self) -> int:
        """The file that says whether it stands still."""
        return self._events

    def has(self, pid: int) -> bool:
        """Whether this process is in it."""
        return cgroup_of(pid) == self.path

    def take(self, pid: int) -> None:
        """Move a process into it, which takes some 5 ms. Raises OSError."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def _event(self, line: bytes) -> bool:
        return self.removed or line in os.pread(self._events, 256, 0)

    def is_frozen(self) -> bool:
        """Every process in it stands still."""
        return self._event(b"frozen 1")

    def is_empty(self) -> bool:
        """No process is left in it."""
        return self._event(b"populated 0")

    def cpu_ns(self) -> int | None:
        """The CPU time of all that ever ran in it; None where the kernel doesn't count.

        What runs at this moment is counted up to the last tick only.
        """
        if not self.removed:
            self._cpu_ns = None
            with contextlib.suppress(OSError, IndexError, ValueError):
                text = (self.path / "cpu.stat").read_text()
                self._cpu_ns = int(text.partition("usage_usec")[2].split()[0]) * 1000
        return self._cpu_ns

    def remove(self) -> bool:
        """Remove the group if no process is left in it; else leave it as it is, frozen or not.

        A handshake may still hold this object: removed, it counts as frozen and does nothing.
        """
        if not self.removed and self.is_empty():
            self.cpu_ns()  # the last chance to know, for this
            self.was_thawed()  # and this
            with contextlib.suppress(OSError):
                self.path.rmdir()
            self.removed = not self.path.exists()
            if self.removed:
                os.close(self._freeze)
                os.close(self._events)
        return self.removed
