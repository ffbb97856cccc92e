# SPDX-License-Identifier: Apache-2.0
"""What a record says of timed pairs: each way to time wrongly is seen, and its neighbour is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex

VENDORS = ("cuda", "hip")
PROGRAM = Path(__file__).with_name("timing_program.py")
COUNTS = (
    "below_noise_floor",
    "empty_pairs",
    "uncovered_pairs",
    "shared_pairs",
    "pairs_with_work_behind",
    "disturbed_pairs",
)
# What each of the program's ways is to be seen as, in so many pairs.
WAYS: dict[str, dict[str, int]] = {
    "good": {},
    "batch": {},
    "nested": {},
    "short": {"below_noise_floor": 1},
    "empty": {"below_noise_floor": 1, "empty_pairs": 1},
    "launched_aside": {"uncovered_pairs": 1},
    "aside_and_here": {"uncovered_pairs": 1},
    "joined": {},
    "joined_and_more": {"uncovered_pairs": 1},
    "joined_by_way_of_another": {},
    "forked_only": {},
    "blocking_and_legacy": {},
    "not_blocking_and_legacy": {"uncovered_pairs": 1},
    "aside_before": {},
    "by_another_thread": {"shared_pairs": 1},
    "work_behind": {"pairs_with_work_behind": 1},
    "allocates": {"disturbed_pairs": 1},
    "loads": {"disturbed_pairs": 1},
}


@pytest.fixture(params=VENDORS)
def cli(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    return cli


def run(cli: Krex, *words: str, **env: str) -> list[dict[str, Any]]:
    """The report of the program, run with these words."""
    command = ("run", "-q", "--sim", "--report", "r.jsonl", "--", sys.executable, str(PROGRAM))
    result = cli(*command, *words, env=cli.env | env)
    assert result.returncode == 0, result.stderr
    return cli.records("r.jsonl")


def regions(report: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in report if record["schema"] == "krex.region"]


@pytest.fixture(scope="module", params=VENDORS)
def seen(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """What the records say of each way, all of one process."""
    cli = Krex(tmp_path_factory.mktemp("audit"))
    cli.env["KREX_TEST_VENDOR"] = request.param
    try:
        return {record["name"]: record["timing"] for record in regions(run(cli, *WAYS))}
    finally:
        cli.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_time_is_seen_for_what_it_is(seen, way):
    # GIVEN a region in which a kernel is timed in some way
    timing = seen[way]
    # THEN its record has that pair, and counts it as what is wrong with it, and as nothing else
    assert timing["timed_pairs_inside"] >= 1
    counted = {name: timing[name] for name in COUNTS if timing[name]}
    if way in ("launched_aside", "not_blocking_and_legacy"):
        assert counted.pop("below_noise_floor", 1) == 1  # there is little on the timed stream
    assert counted == WAYS[way]


def test_pairs_are_counted_once_with_what_they_took(seen):
    # GIVEN a region with ten pairs of one kernel of 0.2 ms each, all read at the end
    timing = seen["batch"]
    # THEN there are ten, of so much together, and their launch is known
    assert (timing["timed_events"], timing["timed_pairs_inside"]) == (20, 10)
    assert timing["timed_s"] == pytest.approx(10 * 200e-6, rel=0.5)
    assert timing["shortest_pair_s"] == pytest.approx(200e-6, rel=0.1)
    assert timing["shortest_pair_launches"] == 1
    # AND a pair around a pair is one more
    assert seen["nested"]["timed_pairs_inside"] == 2


def test_what_is_read_again_is_no_further_pair(cli):
    # GIVEN a pair that is read twice, and events that do not time
    report = regions(run(cli, "read_twice", "untimed"))
    # THEN there is one pair, and the others are none
    assert [r["timing"]["timed_pairs_inside"] for r in report] == [1, 0]
    assert report[1]["timing"]["timed_events"] == 0


@pytest.mark.parametrize(("first", "cold"), [("cold", True), ("good", False)])
def test_a_first_pair_that_nothing_ran_before_is_cold(cli, first, cold):
    # GIVEN a program whose first kernel is timed, or is not
    report = regions(run(cli, first, "short"))
    # THEN its first pair is cold, or is not; a later one never is
    assert [r["timing"]["cold_start"] for r in report] == [cold, False]


def test_a_pair_outside_any_region_is_counted(cli):
    # GIVEN a program that times in a region, and then without one
    # WHEN it was to be marked by its events
    [region, command] = run(cli, "bare", "explicit_then_bare", KREX_REGION="events")
    # THEN the region has all pairs until then, and the command one outside
    assert region["timing"]["timed_pairs_outside"] == 0
    assert command["schema"] == "krex.command"
    assert (command["timed_pairs_total"], command["timed_pairs_outside"]) == (2, 1)


@pytest.mark.parametrize(
    ("words", "region"),
    [(("bare", "good"), "events"), (("bare", "explicit_then_bare"), "auto")],
)
def test_a_report_is_a_list_of_regions_otherwise(cli, words, region):
    # GIVEN a program that times in regions, or one that has marked itself what it wanted marked
    report = run(cli, *words, KREX_REGION=region)
    # THEN there is no other object
    assert [record["schema"] for record in report] == ["krex.region"]


def test_a_whole_command_has_the_pairs_of_all_its_processes(cli):
    # GIVEN a command that is one region, whose program marks nothing
    report = run(cli, "bare", "good", "batch", KREX_REGION="whole")
    # THEN its record has them
    [record] = regions(report)
    timing = record["timing"]
    assert (timing["timed_pairs_inside"], timing["timed_pairs_outside"]) == (11, 0)
