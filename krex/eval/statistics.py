# SPDX-License-Identifier: Apache-2.0
"""Medians with their spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Spread(msgspec.Struct):
    """The quartiles of a sample; the middle one is the median."""

    q1: float
    median: float
    q3: float

    @classmethod
    def of(cls, sample: Sequence[float]) -> Spread:
        """Of at least two values."""
        return cls(*statistics.quantiles(sample, n=4, method="inclusive"))


def percentile(sample: Sequence[float], percent: int) -> float:
    """Of one value or more; between two of them, by their distance."""
    if len(sample) == 1:
        return sample[0]
    return statistics.quantiles(sample, n=100, method="inclusive")[percent - 1]
