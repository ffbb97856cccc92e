# SPDX-License-Identifier: Apache-2.0
"""What processes have mapped: a board, by its shared-memory name, which is unlinked; libraries."""

import os
from pathlib import Path


def takes_part(pid: int, name: str) -> bool:
    """Whether the process can write to the board.

    It can't after an exec, nor when it is gone. A `krex run` only reads the lease.
    """
    ending = f"{name} (deleted)".encode()
    try:
        lines = Path(f"/proc/{pid}/maps").read_bytes().splitlines()
    except OSError:
        return False
    return any(line.endswith(ending) and line.split(b" ")[1].startswith(b"rw") for line in lines)


def participants(name: str) -> list[int]:
    """All that we can see of those, but for ourselves."""
    pids = {int(word) for word in os.listdir("/proc") if word.isdigit()} - {os.getpid()}
    return [pid for pid in sorted(pids) if takes_part(pid, name)]


def has_twice(pid: int, library: str) -> bool:
    """Whether a process has loaded the same library, its name beginning so, more than once.

    dlmopen does that: its code is then mapped twice from the same place of the same file.
    """
    places = _code_of(pid, library)
    return len(places) > len(set(places))


def has_loaded(pid: int, library: str) -> bool:
    """Whether a process has loaded a library whose name begins so."""
    return bool(_code_of(pid, library))


def _code_of(pid: int, library: str) -> list[tuple[bytes, ...]]:
    """Offset, device and inode of what is mapped to be executed; none if it can't be seen."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_bytes().splitlines()
    except OSError:
        return []
    name = b"/" + os.fsencode(library)
    mapped = [line.split() for line in lines if name in line]
    return [tuple(words[2:5]) for words in mapped if b"x" in words[1]]
