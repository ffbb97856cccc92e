# SPDX-License-Identifier: Apache-2.0
"""Automatic marks of functions: what arms begins no region; what times does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex

PROGRAM = Path(__file__).with_name("timing_program.py")
TRIES = 5  # a machine without a free core may stop a program for longer than it is waited for


@pytest.fixture(params=["cuda", "hip"])
def cli(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    return cli


def run(cli: Krex, *words: str, **env: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The regions of the program, and when it did what it says."""
    command = ("run", "-q", "--sim", "--report", "r", "--", sys.executable, str(PROGRAM), "bare")
    (cli.folder / "r").write_text("")
    result = cli(*command, *words, env=cli.env | env)
    assert result.returncode == 0, result.stderr
    said = [line.split() for line in result.stdout.splitlines()]
    regions = [r for r in cli.records("r") if r["schema"] == "krex.region"]
    return regions, {words[0]: int(words[1]) for words in said if len(words) > 1}


def test_the_first_timed_event_begins_the_region(cli):
    # GIVEN a function that is marked, and launches before it times
    [record], said = run(cli, "armed_by_events")
    # THEN what came before has no region, and the pair has
    assert (record["marker"], record["name"], record["exclusive"]) == ("call", "function", True)
    assert record["granted_ns"] > said["untimed"]
    assert record["timing"]["timed_pairs_inside"] == 1
    assert record["timing"]["timed_pairs_outside"] == 0


def test_a_submission_after_a_wait_begins_the_region_where_no_events_time(cli):
    # GIVEN a function that is marked, launches, waits, and then launches three times more
    [record], said = run(cli, "armed_by_waits")
    # THEN the region has the three
    assert record["exclusive"]
    assert record["granted_ns"] > said["waited"] > said["untimed"]
    assert record["submissions"] == 3


@pytest.mark.parametrize("way", ["armed_once", "armed_idly"])
def test_a_function_that_only_warms_up_has_no_region(cli, way):
    # GIVEN a function that is marked, and submits nothing after a wait for something
    # THEN there is no region
    assert run(cli, way)[0] == []


def test_what_is_armed_twice_is_one_region(cli):
    # GIVEN a marked function that is called in another
    [record], _ = run(cli, "armed_twice")
    # THEN the outer one is the region
    assert (record["name"], record["timing"]["timed_pairs_inside"]) == ("outer", 2)


def test_calls_in_a_row_have_their_own_records_and_share_holds(cli):
    for _ in range(TRIES):
        # GIVEN a marked function that is called five times in a row
        report, _ = run(cli, "armed_in_a_row")
        # THEN each call is a region,
        assert [record["name"] for record in report] == [f"call {i}" for i in range(5)]
        assert all(record["exclusive"] for record in report)
        # and the device was not given back between all of them
        if len({record["hold_id"] for record in report}) < len(report):
            return
    raise AssertionError("each call had a hold of its own")


def test_nothing_is_marked_after_the_first_mark_of_the_programs_own(cli):
    # GIVEN a program with a region of its own, and a marked function after it
    report, _ = run(cli, "armed_after_explicit")
    # THEN only its own is one
    assert [record["name"] for record in report] == ["explicit"]


def test_none_marks_nothing(cli):
    # GIVEN a marked function
    # WHEN the command is to have no regions THEN it has none
    assert run(cli, "armed_by_events", KREX_REGION="none")[0] == []


def test_events_and_functions_together(cli):
    # GIVEN a program that times by itself, and in a marked function
    report, _ = run(cli, "good", "armed_by_events", "good", KREX_REGION="events")
    # THEN the function has its own record, and the rest is marked by events
    assert {record["marker"] for record in report} == {"events", "call"}
    [call] = [record for record in report if record["marker"] == "call"]
    assert call["timing"]["timed_pairs_inside"] == 1
    assert report[-1]["timing"]["timed_pairs_outside"] == 0
