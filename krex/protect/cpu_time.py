# SPDX-License-Identifier: Apache-2.0
"""How much CPU time a process tree used: what tells of a sibling that could not be frozen."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# The kernel's number for "CPU time of the process pid", as clock_getcpuclockid(3) makes it.
_PROCESS_CLOCK = 2

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


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread ended
            found += map(int, file.read_text().split())
    return found


def snapshot(roots: Iterable[int]) -> Snapshot:
    """Read the clocks of these processes and of all below them."""
    taken: Snapshot = {}
    left = list(roots)
    while left:
        pid = left.pop()
        used = _used(pid)
        if pid not in taken and used is not None:
            taken[pid] = used
            left += _children(pid)
    return taken


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
