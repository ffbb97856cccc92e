# SPDX-License-Identifier: Apache-2.0
"""KREX_REGION=events: regions of programs that say nothing, by the events with which they time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

PROGRAM = Path(__file__).with_name("timing_program.py")
EVENTS = {"KREX_REGION": "events"}
PAIRS = 20  # of the program's loop, a few milliseconds each
MOST_REGIONS = 3  # of such a loop
LOOPS = 15  # together longer than half a second
LONG_LOOPS = 150  # of kernels of 0.2 ms, without pauses; likewise


@pytest.fixture(params=["cuda", "hip"])
def cli(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    return cli


def start(cli: Krex, *words: str, options: tuple[str, ...] = (), **env: str) -> Any:
    """Start the program, which marks nothing itself, on a simulated device."""
    command = ("run", "-q", "--sim", *options, "--", sys.executable, str(PROGRAM), "bare", *words)
    return cli.start(*command, stdin=subprocess.PIPE, env=cli.env | env)


def run(cli: Krex, *words: str, options: tuple[str, ...] = (), **env: str) -> list[dict[str, Any]]:
    """Run it to its end; the records of its regions."""
    (cli.folder / "r").write_text("")
    process = start(cli, *words, options=("--report", "r", *options), **env)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    return regions(cli, "r")


def regions(cli: Krex, report: str) -> list[dict[str, Any]]:
    return [r for r in cli.records(report) if r["schema"] == "krex.region"]


class Told:
    """The program, which does one thing after the other as it is told."""

    def __init__(self, cli: Krex, *words: str, **env: str) -> None:
        self.process = start(cli, "told", *words, options=("--report", "r"), **env)

    def does_next(self) -> str:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def ends(self) -> None:
        _, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, err


def test_a_loop_of_timed_kernels_is_one_region(cli):
    # GIVEN a program that times kernels in a loop, after a first one that it does not time
    # WHEN it runs with regions by events
    report = run(cli, "loop", **EVENTS)
    # THEN its pairs are in one region; on a machine that stops it for long, in a few
    assert len(report) <= MOST_REGIONS
    assert {(r["marker"], r["exclusive"]) for r in report} == {("events", True)}
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == PAIRS
    timing = report[-1]["timing"]
    assert (timing["timed_pairs_total"], timing["timed_pairs_outside"]) == (PAIRS, 0)


def test_all_that_is_recorded_before_the_first_is_read_is_in_the_region(cli):
    # GIVEN a program that records all pairs, waits once, and reads them all
    [record] = run(cli, "batch", **EVENTS)
    # THEN all are in
    assert record["exclusive"]
    assert record["timing"]["timed_pairs_inside"] == record["timing"]["timed_pairs_total"] == 10


def test_a_kernel_that_waits_for_the_host_holds_nothing_up(cli):
    # GIVEN a program that queues what it times behind a kernel which it lets go afterwards
    report = run(cli, "behind_a_blocking_kernel", **EVENTS)
    # THEN its region is granted all the same, and has its pairs
    assert [r["reasons"] for r in report] == [[]] * len(report)
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == 3


@pytest.mark.parametrize("region", ["events", "auto"])
@pytest.mark.parametrize("way", ["untimed", "captured"])
def test_events_that_do_not_time_begin_no_region(cli, way, region):
    # GIVEN a program whose events do not time, or are only captured
    # WHEN it runs THEN there is no region
    assert run(cli, way, KREX_REGION=region) == []


@pytest.mark.parametrize("region", ["", "auto"])
def test_events_mark_what_nothing_else_marks(cli, region):
    # GIVEN a program that times, and has no marks
    # WHEN it runs as by default
    [record] = run(cli, "good", KREX_REGION=region)
    # THEN its events mark it
    assert (record["marker"], record["exclusive"]) == ("events", True)
    assert record["timing"]["timed_pairs_inside"] == 1


@pytest.mark.parametrize("region", ["none", "call:no.such", "nvtx:no such"])
def test_events_mark_nothing_where_something_else_is_asked_for(cli, region):
    # GIVEN a program that times
    # WHEN it is to have no regions, or others THEN there is none
    assert run(cli, "good", KREX_REGION=region) == []


def test_a_program_that_may_mark_itself_is_left_to_that(cli):
    # GIVEN a program that imports krex, and times before its own mark and after it
    # WHEN it runs as by default THEN its mark is the only region
    report = run(cli, "imports_krex", "good", "explicit_then_bare")
    assert [r["name"] for r in report] == ["explicit"]
    # AND where events are asked for, what it times before is one too
    report = run(cli, "imports_krex", "good", "explicit_then_bare", **EVENTS)
    assert [r["marker"] for r in report] == ["events", "explicit"]


def test_a_marked_function_is_not_marked_by_its_events_too(cli):
    # GIVEN a program that times by itself, and then in a marked function
    report = run(cli, "good", "armed_by_events", "armed_by_waits", "good")
    # THEN each has one mark, and all that was timed is in one
    marked = [(r["marker"], r["timing"]["timed_pairs_inside"]) for r in report]
    assert [pair for pair in marked if pair[0] == "call"] == [("call", 1), ("call", 0)]
    assert sum(pairs for marker, pairs in marked if marker == "events") == 2
    assert report[-1]["timing"]["timed_pairs_outside"] == 0


def test_a_region_ends_while_the_program_goes_on(cli):
    # GIVEN a program that has timed
    told = Told(cli, "good", "good", **EVENTS)
    assert told.does_next() == "good"
    # WHEN it does nothing THEN its region ends, and the device is free
    [record] = wait_for(lambda: (cli.folder / "r").exists() and cli.records("r"))
    assert record["exclusive"]
    wait_for(lambda: cli.status()["devices"][0]["hold"] is None)
    # WHEN it times again THEN that is another region
    assert told.does_next() == "good"
    told.ends()
    both = regions(cli, "r")
    assert [r["index"] for r in both] == [0, 1]
    assert [r["timing"]["timed_pairs_inside"] for r in both] == [1, 1]
    assert both[0]["hold_id"] != both[1]["hold_id"]


def test_a_timed_event_that_nobody_reads_does_not_keep_the_device(cli):
    # GIVEN a program that records an event, waits for its work, and never reads the event
    told = Told(cli, "unread", "untimed", **EVENTS)
    assert told.does_next() == "unread"
    # THEN its region ends all the same
    [record] = wait_for(lambda: (cli.folder / "r").exists() and cli.records("r"))
    assert record["exclusive"]
    assert record["timing"]["timed_pairs_inside"] == 0
    told.does_next()
    told.ends()


def test_the_first_mark_of_the_programs_own_ends_regions_by_events(cli):
    # GIVEN a program that marks a region itself, and times in it and after it
    report = run(cli, "explicit_then_bare", **EVENTS)
    # THEN only its own region is one
    assert [(r["marker"], r["name"]) for r in report] == [("explicit", "explicit")]


def test_commands_that_time_at_once_take_turns(cli):
    # GIVEN three commands that time kernels in loops, at once
    log = cli.folder / "device.tsv"
    options = ("--sim-log", str(log), "--report")
    running = [
        start(cli, "told", "loop", "loop", options=(*options, f"r{i}"), **EVENTS) for i in range(3)
    ]
    for process in running:
        process.stdin.write("\n\n")
        process.stdin.flush()
    for process in running:
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
    records = [record for i in range(3) for record in regions(cli, f"r{i}")]
    # THEN nearly all regions were exclusive, and hold all that was timed
    assert sum(r["timing"]["timed_pairs_inside"] for r in records) == 3 * 2 * PAIRS
    assert sum(r["exclusive"] for r in records) >= len(records) - 1
    # AND none shares the device, by its own word
    cli.stop_controller()
    reports = [str(cli.folder / f"r{i}") for i in range(3)]
    checked = cli("sim", "check", "--json", str(log), *reports)
    found = json.loads(checked.stdout)
    assert (checked.returncode, found["violations"]) == (0, [])
    assert found["exclusive"] == sum(r["exclusive"] for r in records)


def test_a_loop_that_is_longer_than_the_limit_is_several_regions(cli):
    # GIVEN a limit that a loop is longer than, each of its pairs being shorter
    report = run(cli, *["loop"] * LOOPS, options=("--max-hold", "1"), **EVENTS)
    # THEN several regions have it between them, and all were exclusive
    assert len(report) > 1
    assert [r["reasons"] for r in report] == [[]] * len(report)
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == LOOPS * PAIRS
    # AND no hold was longer than that (where a stall ends a region early, the next shares its hold)
    assert len({r["hold_id"] for r in report}) > 1


def test_who_never_reads_its_events_gives_others_a_turn_too(cli):
    # GIVEN a limit, and a program that records events in a loop that is longer, and reads none
    report = run(cli, *["unread_loop"] * LONG_LOOPS, options=("--max-hold", "0.2"), **EVENTS)
    # THEN it has several holds, none of which the limit ended
    assert len({r["hold_id"] for r in report}) > 1
    assert [r["reasons"] for r in report] == [[]] * len(report)


def test_a_pair_that_is_longer_than_the_limit_says_so(cli):
    # GIVEN a limit that one pair is longer than, and a pair after that
    report = run(cli, "endless", "good", options=("--max-hold", "0.1"), **EVENTS)
    # THEN its region ended at the limit, and the next one is exclusive
    assert [r["reasons"] for r in report] == [["max_hold_exceeded"], []]


def test_unprotected_regions_by_events_are_recorded_too(cli):
    # GIVEN a command that nothing protects
    report = run(cli, "loop", options=("--exclusive", "none"), **EVENTS)
    # THEN its loop is a region that says so
    assert len(report) <= MOST_REGIONS
    assert {tuple(r["reasons"]) for r in report} == {("exclusive_none",)}
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == PAIRS
