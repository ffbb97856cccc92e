# SPDX-License-Identifier: Apache-2.0
"""When a command's failure may be a time limit that fired because it stood still."""

import pytest

from krex.controller.farewell import suspects_limit
from krex.protect.freezer import Stillness

STILL = Stillness(times=3, total_s=2.0, longest_s=1.0, ago_s=0.01)


@pytest.mark.parametrize("status", [1, 124, 137, 142, 143])
def test_a_failure_right_after_a_thaw_is_suspect(status):
    assert suspects_limit(STILL, status, 10.0)


@pytest.mark.parametrize(
    ("still", "status", "duration_s"),
    [
        (STILL, 0, 10.0),  # no failure
        (STILL, 130, 10.0),  # Ctrl-C
        (STILL._replace(ago_s=1.5), 1, 10.0),  # long ago
        (STILL, 1, 1000.0),  # a fraction of its time that no limit is so close to
        (STILL._replace(total_s=0.05), 1, 1.0),
        (Stillness(), 1, 1.0),  # never
    ],
)
def test_other_ends_are_not(still, status, duration_s):
    assert not suspects_limit(still, status, duration_s)
