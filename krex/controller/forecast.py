# SPDX-License-Identifier: Apache-2.0
"""When those who wait for a slot will get one, judged by how long the last commands took."""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

REMEMBERED = 32
UNKNOWN = math.inf


class Durations:
    """How long the last commands took on one device, from their start to their end."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=REMEMBERED)

    def add(self, seconds: float) -> None:
        """One more command ended."""
        self._last.append(seconds)

    def left(self, age_s: float) -> float:
        """How long a command of this age is expected to run on.

        It will have taken what those that took longer took, in the median. UNKNOWN if none did:
        less than the truth would keep people waiting for a moment that does not come.
        """
        longer = sorted(d for d in self._last if d > age_s)
        return longer[len(longer) // 2] - age_s if longer else UNKNOWN


class Occupant(NamedTuple):
    """Who has a slot."""

    left_s: float
    asked: bool  # to be let in; else it took its slot by itself
    alone: bool


def play(
    inside: Sequence[Occupant], slots: int, wishes: Iterable[bool], typical_s: float
) -> list[float | None]:
    """Seconds until each of those who wait is let in; None where that cannot be told.

    `wishes` says of each, in their order, whether it is to be alone. They are let in one after the
    other, as Admission does it, and each is taken to stay for `typical_s`.
    """
    free = [0.0] * (slots - len(inside)) + [occupant.left_s for occupant in inside]
    heapq.heapify(free)
    for _ in range(len(inside) - slots):  # the first to leave leave no slot behind
        heapq.heappop(free)
    last_end = max((o.left_s for o in inside if o.asked), default=0.0)
    earliest = max((o.left_s for o in inside if o.alone), default=0.0)
    starts = []
    for alone in wishes:
        start = max(earliest, heapq.heappop(free), last_end if alone else 0.0)
        end = start + typical_s
        heapq.heappush(free, end)
        last_end = max(last_end, end)
        earliest = end if alone else start
        starts.append(None if start == UNKNOWN else start)
    return starts
