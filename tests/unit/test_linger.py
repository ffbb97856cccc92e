# SPDX-License-Identifier: Apache-2.0
"""For how long a device stays with a command that times nothing at the moment."""

from __future__ import annotations

import pytest

from krex.controller import linger
from krex.controller.linger import LINGER_S, Gaps, linger_s


@pytest.mark.parametrize(
    ("usual_s", "others_wait", "expected_s"),
    [
        (None, False, LINGER_S),
        (0.001, False, LINGER_S),
        (1.0, False, LINGER_S),
        (None, True, LINGER_S),  # nobody knows yet
        (0.001, True, 0.002),
        (0.015, True, LINGER_S),
        (0.021, True, 0.0),  # it will not be back in time
    ],
)
def test_who_waits_waits_no_longer_than_the_usual_gap(usual_s, others_wait, expected_s):
    # GIVEN a command whose marks follow each other so, and others that wait or do not
    # THEN it is waited for so long
    assert linger_s(usual_s, others_wait=others_wait) == expected_s


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(linger.time, "monotonic", lambda: now[0])
    return now


def test_the_usual_gap_is_the_longest_lately(clock):
    gaps = Gaps()

    def after(gap_s: float) -> float:
        gaps.left_at = clock[0]
        clock[0] += gap_s
        gaps.entered()
        return round(gaps.usual_s or 0, 6)

    # GIVEN a command that has been there once
    gaps.entered()
    assert gaps.usual_s is None
    # WHEN it comes back after some time THEN that is usual; a longer one counts at once,
    assert after(0.004) == 0.004
    assert after(0.008) == 0.008
    # and is forgotten little by little
    assert after(0.0) == 0.007
    assert after(0.0) < 0.007
