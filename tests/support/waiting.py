# SPDX-License-Identifier: Apache-2.0
"""Waiting for what other processes do: until it is so, with a deadline that no machine needs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEADLINE_S = 30


def wait_for(condition: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
    """The first true answer of `condition`."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.005)
    raise AssertionError("did not happen in time")


def state_of(pid: int) -> str:
    """The letter that `ps` shows; X if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def ended(pid: int) -> bool:
    """Gone, or a zombie: whoever adopted a process may take its time to reap it."""
    return state_of(pid) in "XZ"


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory for a socket, whose name has 107 bytes: too few for pytest's tmp_path."""
    directory = Path(tempfile.mkdtemp(prefix="krex-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
