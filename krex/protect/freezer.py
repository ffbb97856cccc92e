# SPDX-License-Identifier: Apache-2.0
"""cgroup v2 groups, one a command, and their freeze files."""

import contextlib
import os
import time
from pathlib import Path


def find_base(process: str = "self") -> Path | None:
    """The cgroup v2 directory in which groups can be made, a process's own (its pid), or None."""
    mount = next(
        (
            Path(fields[1])
            for fields in map(str.split, Path("/proc/self/mounts").read_text().splitlines())
            if fields[2] == "cgroup2"
        ),
        None,
    )
    if mount is None:
        return None
    for line in Path("/proc", process, "cgroup").read_text().splitlines():
        if line.startswith("0::/") and not line.startswith("0::/.."):
            base = mount / line[4:]
            return base if os.access(base, os.W_OK) else None
    return None


def recover(base: Path) -> None:
    """Thaw the groups of controllers that died, and remove those that are empty.

    A group's name carries its controller's pid. A pid that somebody else has by now keeps its group
    for another time, unless it is this process: what is there before we start isn't ours.
    """
    for path in base.glob("krex-c-*-*"):
        pid = path.name.split("-")[2]
        if Path("/proc", pid).exists() and pid != str(os.getpid()):
            continue
        with contextlib.suppress(OSError):
            (path / "cgroup.freeze").write_text("0")
            path.rmdir()


class Group:
    """One command's group: made here, frozen and thawed here, removed when it is empty."""

    def __init__(self, path: Path) -> None:
        """Make the group. Raises OSError."""
        path.mkdir()
        self.path = path
        self.frozen = self.removed = False
        self.frozen_s = 0.0
        self._since = 0.0
        self._freeze = os.open(path / "cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        self._events = os.open(path / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)

    def freeze(self) -> None:
        """Ask for the freeze; `is_frozen` says when it is reached (about 0.1 ms later)."""
        if not self.frozen and not self.removed:
            os.pwrite(self._freeze, b"1", 0)
            self.frozen, self._since = True, time.monotonic()

    def thaw(self) -> None:
        """Let the group run. Does nothing if this object has not frozen it."""
        if self.frozen:
            os.pwrite(self._freeze, b"0", 0)
            self.frozen = False
            self.frozen_s += time.monotonic() - self._since

    def _event(self, line: bytes) -> bool:
        return self.removed or line in os.pread(self._events, 256, 0)

    def is_frozen(self) -> bool:
        """Every process in it stands still."""
        return self._event(b"frozen 1")

    def is_empty(self) -> bool:
        """No process is left in it."""
        return self._event(b"populated 0")

    def remove(self) -> bool:
        """Remove the group if no process is left in it; else leave it as it is, frozen or not.

        A handshake may still hold this object: removed, it counts as frozen and does nothing.
        """
        if not self.removed and self.is_empty():
            with contextlib.suppress(OSError):
                self.path.rmdir()
            self.removed = not self.path.exists()
            if self.removed:
                os.close(self._freeze)
                os.close(self._events)
        return self.removed
