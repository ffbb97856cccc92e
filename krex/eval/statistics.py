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
