# SPDX-License-Identifier: Apache-2.0
"""Which processes take part in a board, told by its shared-memory name, which is unlinked."""

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
