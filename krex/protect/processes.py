# SPDX-License-Identifier: Apache-2.0
"""Which processes belong together: those of a cgroup, those below another one, those above it."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def children(pid: int) -> list[int]:
    """The children of a process; none if it is gone."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread ended
            found += map(int, file.read_text().split())
    return found


def below(roots: Iterable[int]) -> set[int]:
    """These processes, and all that descend from them."""
    found: set[int] = set()
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children(pid)
    return found


def above(pid: int) -> set[int]:
    """The ancestors of a process, init excepted."""
    found: set[int] = set()
    while (pid := _parent(pid)) > 1:
        found.add(pid)
    return found


def members(group: Path) -> set[int]:
    """The processes of a cgroup, and of those that its processes made inside it."""
    found: set[int] = set()
    for folder, _, _ in os.walk(group):
        with contextlib.suppress(OSError):  # it is gone, or a threaded one
            found.update(map(int, Path(folder, "cgroup.procs").read_text().split()))
    return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
