# SPDX-License-Identifier: Apache-2.0
"""File locks, of all three kinds: who waits for one, and who has it.

/proc/locks names processes, but it can't name the owner of a lock of an open file description, and
one that was locked by a process that is gone, whose child has the description now, has its pid.
/proc/PID/fdinfo then shows by which process such a lock is kept.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

UNKNOWN = -1

Key = TypeVar("Key")


class Entry(NamedTuple):
    """A line of /proc/locks: a lock, or a request that waits for it."""

    number: int  # a lock and those that wait for it have the same
    waits: bool
    pid: int  # UNKNOWN for a lock of an open file description
    file: str  # device and inode, as the kernel writes them

    @property
    def inode(self) -> int:
        """Of the file; the device is not always the one that stat shows."""
        return int(self.file.rpartition(":")[2])


class Lock(NamedTuple):
    """A lock that somebody has, and all that wait for it."""

    owner: Entry
    waiters: tuple[Entry, ...]


def parse(text: str) -> Iterator[Entry]:
    """Read the lines of /proc/locks, or those of a descriptor. Others are left out."""
    for line in text.splitlines():
        number, *words = line.split()
        waits = words[:1] == ["->"]
        with contextlib.suppress(ValueError, IndexError):
            pid, file = words[3 + waits : 5 + waits]
            entry = Entry(int(number.rstrip(":")), waits, int(pid), file)
            _ = entry.inode
            yield entry


def parse_all(text: str) -> list[Lock]:
    """The locks of /proc/locks."""
    found = []
    for _, entries in groupby(parse(text), lambda entry: entry.number):
        owner, *waiters = entries
        found.append(Lock(owner, tuple(waiters)))
    return found


def read() -> list[Lock]:
    """All locks that there are now; none if the kernel doesn't tell."""
    try:
        return parse_all(Path("/proc/locks").read_text())
    except OSError:
        return []


def blockers(
    locks: Iterable[Lock], waiting: Collection[int], others: Mapping[Key, Collection[int]]
) -> set[Key]:
    """Which of the others, each given with its processes, has a lock that `waiting` waits for.

    Frozen ones that wait for the same lock are not before it: a freeze takes them out of the queue.
    """
    found: set[Key] = set()
    for lock in locks:
        if not any(_is_one_of(entry, waiting) for entry in lock.waiters):
            continue
        owners = {key for key, mine in others.items() if lock.owner.pid in mine}
        found |= owners or {
            key for key, mine in others.items() if any(keeps(p, lock.owner.file) for p in mine)
        }
    return found


def _is_one_of(request: Entry, processes: Collection[int]) -> bool:
    if request.pid != UNKNOWN:
        return request.pid in processes
    # Who waits for a lock of its open file description has the file open, at least.
    return any(has_open(pid, request.inode) for pid in processes)


def keeps(pid: int, file: str) -> bool:
    """Whether a lock on the file belongs to a descriptor of this process."""
    return bool(kept(pid, {file}))


def kept(pid: int, files: Collection[str]) -> list[str]:
    """The descriptors of a process to which locks on these files belong, as paths."""
    return [
        f"/proc/{pid}/fd/{fd}"
        for fd, line in _fdinfo(pid)
        if line.startswith("lock:")
        and any(entry.file in files for entry in parse(line.partition("\t")[2]))
    ]


def has_open(pid: int, inode: int) -> bool:
    """Whether the process has a file of this inode open."""
    return any(line.split() == ["ino:", str(inode)] for _, line in _fdinfo(pid))


def _fdinfo(pid: int) -> Iterator[tuple[str, str]]:
    """Each line of all descriptors, with the descriptor."""
    folder = f"/proc/{pid}/fdinfo"
    with contextlib.suppress(OSError):  # it's gone, or another user's
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                for line in Path(folder, name).read_text(errors="replace").splitlines():
                    yield name, line
