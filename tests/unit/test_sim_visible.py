# SPDX-License-Identifier: Apache-2.0
"""Which simulated devices a variable lets be seen. That it is so: integration/test_visible.py."""

from __future__ import annotations

import pytest

from krex.sim.visible import narrowed

CUDA, HIP = "GPU-4b524558-2d53-494d-8000-00000000000", "GPU-800000000000000"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0,2", [0, 2]),
        ("3, 1", [3, 1]),
        ("2,9,1", [2]),
        ("1,x,0", [1]),
        ("-1", []),
        ("", []),
        (f"{CUDA}2", [2]),
        (f"{HIP}1,{CUDA}3", [1, 3]),
        (f"{HIP}1".lower(), [1]),
        (f"{HIP}9", []),
        (HIP, []),  # the beginning of all
        ("GPU-", []),
        ("1,1", []),
        (f"1,{HIP}1", []),
    ],
)
def test_devices_are_named_by_numbers_and_uuids(text: str, wanted: list[int]) -> None:
    assert narrowed([0, 1, 2, 3], text) == wanted


def test_a_number_counts_what_was_left_before() -> None:
    assert narrowed([3, 1], "1,0") == [1, 3]
    assert narrowed([3, 1], f"{HIP}3,2") == [3]
    assert narrowed([3, 1], f"{HIP}2") == []
