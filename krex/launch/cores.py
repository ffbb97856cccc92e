# SPDX-License-Identifier: Apache-2.0
"""The way off a region's reserved CPUs for a command whose controller is gone.

The controller alone knows what CPUs each pinned thread had before. Without it all of the command's
threads that are on reserved CPUs only get those of the command, which each had at its start.
"""

from __future__ import annotations

import os

# Each finds what was born in the one before.
_PASSES = 100


def processes(cgroup: str | None, root: int) -> set[int]:
    """A command's processes: those of its cgroup, and those below its first one."""
    found: set[int] = set()
    left = [root] if root > 0 else []
    for folder, _, _ in os.walk(cgroup or ""):
        left += _numbers(os.path.join(folder, "cgroup.procs"))
    while left:
        pid = left.pop()
        # 0 is one that cannot be seen from this pid namespace.
        if pid > 0 and pid not in found:
            found.add(pid)
            for tid in _threads(pid):
                left += _numbers(f"/proc/{pid}/task/{tid}/children")
    return found


def give_back(cgroup: str | None, root: int, cpus: set[int], reserved: set[int]) -> int:
    """Let every thread that is pinned to reserved CPUs run on the command's; how many there were.

    A fork that is under way shows its child later: look again after a while.
    """
    moved = 0
    for _ in range(_PASSES):
        pids = processes(cgroup, root)
        found = sum(_give_back(tid, cpus, reserved) for pid in pids for tid in _threads(pid))
        if not found:
            break
        moved += found
    return moved


def _give_back(tid: int, cpus: set[int], reserved: set[int]) -> bool:
    try:
        if not os.sched_getaffinity(tid) <= reserved:
            return False
        os.sched_setaffinity(tid, cpus)
    except OSError:
        return False  # it ended, or changed its user
    return True


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _numbers(path: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
