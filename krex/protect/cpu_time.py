# SPDX-License-Identifier: Apache-2.0
"""How much CPU time commands used: what tells of a sibling that runs beside a region."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from krex.protect.freezer import Group
from krex.protect.processes import below, members

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# The kernel's number for "CPU time of the process pid", as clock_getcpuclockid(3) makes it.
_PROCESS_CLOCK = 2
# The longest time between two ticks, in which the kernel looks at who runs: 100 a second.
_UNSEEN_NS = 10_000_000

# Nanoseconds, by pid: used by the process, and by those of its children that it has waited for.
Snapshot = dict[int, tuple[int, int]]


def _used(pid: int) -> tuple[int, int] | None:
    """None: there is no such process (any more)."""
    try:
        own = time.clock_gettime_ns((~pid << 3) | _PROCESS_CLOCK)
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return own, (int(fields[13]) + int(fields[14])) * _TICK_NS


def snapshot(roots: Iterable[int]) -> Snapshot:
    """Read the clocks of these processes and of all below them."""
    used = ((pid, _used(pid)) for pid in below(roots))
    return {pid: times for pid, times in used if times is not None}


def used_ns(before: Snapshot, after: Snapshot) -> int | None:
    """What was used in between; None if that isn't known, because a process ended.

    A process that began in between counts from its beginning. One that began and ended is found in
    its parent's account, to the precision of a tick.
    """
    if before.keys() - after.keys():
        return None
    total = 0
    for pid, (own, waited_for) in after.items():
        own_before, waited_before = before.get(pid, (0, waited_for))
        total += own - own_before + waited_for - waited_before
    return total


def _running(pid: int) -> int:
    """How many threads of a process are on a CPU, or wait for one."""
    count = 0
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread ended
            count += file.read_bytes().rpartition(b")")[2].split()[0] == b"R"
    return count


class Account:
    """What commands use, each from the moment when it was added: by its group if it has one.

    A group's time is exact, processes that began and ended included. A tree's is not known any more
    once a process of it has ended.
    """

    def __init__(self) -> None:
        self._groups: dict[Group, int | None] = {}
        self._trees: Snapshot = {}

    def __bool__(self) -> bool:
        return bool(self._groups or self._trees)

    def add_group(self, group: Group) -> None:
        """Count a group from now on, if it isn't counted yet."""
        if group not in self._groups:
            self._groups[group] = group.cpu_ns()

    def add_trees(self, roots: Iterable[int]) -> None:
        """Count these processes and those below from now on, if they aren't counted yet."""
        self._trees = snapshot(roots) | self._trees

    def used_ns(self, roots: Iterable[int]) -> int | None:
        """What all used up to now; `roots` are those of all trees. None: it isn't known.

        Who is running now may have been since the last tick, unseen: that counts as used.
        """
        trees = snapshot(roots)
        total = used_ns(self._trees, trees)
        pids = set(trees)
        for group, before in self._groups.items():
            after = group.cpu_ns()
            if total is None or before is None or after is None:
                return None
            total += after - before
            pids |= set() if group.removed else members(group.path)
        return None if total is None else total + _UNSEEN_NS * sum(map(_running, pids))
