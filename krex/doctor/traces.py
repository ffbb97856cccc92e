# SPDX-License-Identifier: Apache-2.0
"""The names of what probes make for a moment.

They carry the doctor's pid, so that the next doctor knows what one that was killed has left.
"""

from __future__ import annotations

import os

_PREFIX = "krex-doctor-"


def name(pid: int) -> str:
    """For what the doctor with this pid makes: a segment, a cgroup, a folder."""
    return f"{_PREFIX}{pid}"


def stale(directory: str) -> list[str]:
    """The paths in a directory that dead doctors left."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return [
        os.path.join(directory, entry)
        for entry in names
        if entry.startswith(_PREFIX) and not os.path.exists(f"/proc/{entry[len(_PREFIX) :]}")
    ]
