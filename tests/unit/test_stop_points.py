# SPDX-License-Identifier: Apache-2.0
"""Whether deaths are tried at each named stop point that there is."""

from __future__ import annotations

import re
from pathlib import Path

from support.stop_points import CONTROLLER, CUDA, HOLDER, NEWCOMER, SIBLING

ROOT = Path(__file__).parents[2]
# The points of one call: it may choose between two.
CALL = re.compile(r"stop_at\(([^()]*)\)")
NAME = re.compile(r'"([a-z-]+)"')


def named(sources: list[Path]) -> list[str]:
    """The points that the sources name."""
    calls = [call for source in sources for call in CALL.findall(source.read_text())]
    return [name for call in calls for name in NAME.findall(call)]


def test_deaths_are_tried_at_every_stop_point():
    # GIVEN the points in the sources WHEN they are compared with those of tests/stress
    controller = named(sorted((ROOT / "krex").rglob("*.py")))
    library = named(sorted((ROOT / "shim").rglob("*.c")))
    # THEN none is missing, none is gone, and none stands for two steps.
    assert sorted(controller) == sorted(CONTROLLER)
    assert sorted(library) == sorted((*NEWCOMER, *SIBLING, *HOLDER, *CUDA))


def test_a_choice_between_two_points_names_both():
    [call] = CALL.findall('stop_at("a-b" if which == HEAVY else "c")')
    assert NAME.findall(call) == ["a-b", "c"]
