# SPDX-License-Identifier: Apache-2.0
"""Many groups at once: a hold waits for the last of them, and each moment between two is lost."""

import os
import time
from collections.abc import Iterable

from krex.native import lib
from krex.protect.freezer import Group


def freeze(groups: Iterable[Group]) -> None:
    """Ask for the freeze of all of them. Raises OSError; `thaw` then undoes what was reached."""
    wanted = [group for group in groups if not group.frozen and not group.removed]
    now = time.monotonic()
    for group in wanted:
        group.note_freeze(now)  # before it is: nothing may be overlooked by `thaw`
    if failure := lib.krex_groups_write([g.freeze_fd for g in wanted], len(wanted), 1):
        raise OSError(failure, os.strerror(failure))


def await_frozen(groups: Iterable[Group], limit_s: float) -> list[Group]:
    """Wait until every process in them stands still, at most limit_s; those that may still run.

    Blocks the thread, for limits of a few milliseconds.
    """
    running = [group for group in groups if not group.removed]  # nothing is left in the others
    events = [group.events_fd for group in running]
    left = lib.krex_groups_await_frozen(events, len(events), int(limit_s * 1e9))
    return running[:left]


def thaw(groups: Iterable[Group]) -> None:
    """Let all of them run that were frozen by their objects. Never fails half-way.

    A group that somebody removed has nothing left to thaw; the others do.
    """
    wanted = [group for group in groups if group.frozen]
    there = [group.freeze_fd for group in wanted if not group.removed]
    lib.krex_groups_write(there, len(there), 0)
    now = time.monotonic()
    for group in wanted:
        group.note_thaw(now)
