# SPDX-License-Identifier: Apache-2.0
"""Timed pairs that only HIP has: events of a launch itself, and of the thread's own stream.

The rest is in ../cuda, for both: test_events.py, test_audit_counts.py, test_arming.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex

PROGRAM = Path(__file__).with_name("launch_timing_program.py")
COUNTS = ("empty_pairs", "uncovered_pairs", "pairs_with_work_behind", "disturbed_pairs")
# What each of the program's ways is to be seen as.
WAYS: dict[str, tuple[str, ...]] = {
    "by_both": (),
    "by_its_end": (),
    "by_its_beginning": (),
    "by_none": (),
    "aside": ("uncovered_pairs",),
    "after_one_that_failed": (),
    "on_its_own_stream": (),
    "own_stream_joined": (),
    "own_stream_with_flags": ("uncovered_pairs",),
}


def run(cli: Krex, *words: str, **env: str) -> list[dict[str, Any]]:
    """The regions of the program, run with these words."""
    (cli.folder / "r").write_text("")
    command = ("run", "-q", "--sim", "--report", "r", "--", sys.executable, str(PROGRAM))
    result = cli(*command, *words, env=cli.env | {"KREX_TEST_VENDOR": "hip"} | env)
    assert result.returncode == 0, result.stderr
    return [record for record in cli.records("r") if record["schema"] == "krex.region"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the records say of each way, all of one process."""
    cli = Krex(tmp_path_factory.mktemp("launches"))
    try:
        return {record["name"]: record["timing"] for record in run(cli, *WAYS)}
    finally:
        cli.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_time_is_seen_for_what_it_is(seen, way):
    # GIVEN a region in which a kernel is timed in some way
    timing = seen[way]
    # THEN its record has that pair and no other event, and counts what is wrong with it
    assert (timing["timed_events"], timing["timed_pairs_inside"]) == (2, 1)
    assert tuple(name for name in COUNTS if timing[name]) == WAYS[way]
    assert timing["shortest_pair_launches"] == 1


@pytest.mark.parametrize("way", ["by_both", "by_its_end", "by_its_beginning", "on_its_own_stream"])
def test_its_events_begin_a_region(cli, way):
    # GIVEN a program that marks nothing, and times by the launch itself, or on its own stream
    # WHEN it runs with regions by events
    [record] = run(cli, "bare", way, KREX_REGION="events")
    # THEN that is a region
    assert (record["marker"], record["exclusive"]) == ("events", True)
    assert (record["timing"]["timed_pairs_inside"], record["timing"]["timed_pairs_total"]) == (1, 1)


def test_a_captured_launch_with_events_begins_none(cli):
    # GIVEN a program that only captures such a launch
    # WHEN it runs with regions by events THEN there is no region
    assert run(cli, "bare", "captured", KREX_REGION="events") == []
