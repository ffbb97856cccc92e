# SPDX-License-Identifier: Apache-2.0
"""Automatic marks of OpenCL programs, and regions of several processes of one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S

PROGRAM = Path(__file__).with_name("timing_program.py")
PAIRS = 10
EVENTS = {"KREX_REGION": "events"}


def run(krex: Krex, *words: str, **env: str) -> list[dict[str, Any]]:
    """The records of the program's regions, in the order of their grants."""
    (krex.folder / "r").write_text("")
    command = ("run", "-q", "--report", "r", "--", sys.executable, str(PROGRAM), *words)
    process = krex.start(*command, env=krex.env | env)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    regions = [r for r in krex.records("r") if r["schema"] == "krex.region"]
    return sorted(regions, key=lambda record: record["granted_ns"])


@pytest.mark.parametrize("way", ["loop", "batch"])
def test_what_is_timed_by_profiles_is_in_a_region(krex, way):
    # GIVEN a program that reads the profiles of its kernels, one by one or all at the end
    report = run(krex, way, **EVENTS)
    # THEN all of them are in a region by events; on a machine that stops it for long, in a few
    assert len(report) <= 3
    assert {(r["marker"], r["exclusive"]) for r in report} == {("events", True)}
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == PAIRS
    assert report[-1]["timing"]["timed_pairs_outside"] == 0


@pytest.mark.parametrize(
    ("way", "env"),
    [("unprofiled", EVENTS), ("unprofiled", {}), ("unread", {}), ("loop", {"KREX_REGION": "none"})],
)
def test_what_does_not_time_or_is_not_to_mark_has_no_region(krex, way, env):
    # GIVEN a queue without profiles, or profiles that nobody reads, or a command without regions
    # THEN there is no region
    assert run(krex, way, **env) == []


def test_by_default_a_program_is_marked_once_it_has_read_a_profile(krex):
    # GIVEN a program that reads the profiles of its kernels one by one
    report = run(krex, "loop")
    # THEN all but the first are in regions by events, which say so
    assert {(r["marker"], r["exclusive"]) for r in report} == {("events", True)}
    assert sum(r["timing"]["timed_pairs_inside"] for r in report) == PAIRS - 1
    assert report[-1]["timing"]["timed_pairs_outside"] == 1


def test_profiles_are_pairs_with_what_they_say(krex):
    # GIVEN the program with a region of its own
    [record] = run(krex, "marked")
    timing = record["timing"]
    # THEN its kernels are timed pairs, the first of which nothing came before
    assert (timing["timed_events"], timing["timed_pairs_inside"]) == (PAIRS, PAIRS)
    assert timing["cold_start"]
    assert 0 < timing["shortest_pair_s"] <= timing["timed_s"] / PAIRS


def test_an_armed_function_has_its_region_from_the_second_kernel_on(krex):
    # GIVEN a function that is marked, and times by the host's clock
    [record] = run(krex, "armed")
    # THEN the region begins after its first kernel
    assert (record["marker"], record["name"], record["submissions"]) == ("call", "function", 3)


def test_a_child_of_the_holder_measures_at_once(krex):
    # GIVEN a supervisor that holds a region, and starts a child that measures in its own
    outer, inner = run(krex, "child")
    # THEN the child did not wait for the supervisor: it shares what that holds
    assert (outer["name"], inner["name"]) == ("supervisor", "child")
    assert outer["exclusive"] and inner["exclusive"]
    assert outer["hold_id"] == inner["hold_id"]


def test_two_processes_of_a_command_take_turns(krex):
    # GIVEN a command with two processes that both measure
    first, second = run(krex, "both")
    # THEN each had the device to itself, one after the other
    assert first["exclusive"] and second["exclusive"]
    assert first["hold_id"] != second["hold_id"]
    assert first["released_ns"] <= second["granted_ns"]
