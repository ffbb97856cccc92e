# SPDX-License-Identifier: Apache-2.0
"""Stream captures beside a region: they end as if there were none, and the record is honest."""

from __future__ import annotations

import pytest
from support.command_line import Krex
from support.told import Told
from support.waiting import DEADLINE_S, wait_for

TRIES = 5  # a machine without a free core may miss a deadline


@pytest.fixture(params=["cuda", "hip"])
def sim(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    cli.start_controller()
    return cli


def has_hold(krex: Krex) -> bool:
    """Whether somebody has the device, or is acquiring it: then the heavy gate is shut."""
    return any(device["hold"] for device in krex.status()["devices"])


def is_exclusive_at_last(holder: Told) -> bool:
    """Whether a region is, of the next few."""
    for _ in range(TRIES):
        holder.does("enter", "leave")
        if holder.last_record()["exclusive"]:
            return True
    return False


def test_a_capture_gets_to_its_end_although_the_heavy_gate_is_shut(sim: Krex) -> None:
    sibling, holder = Told(sim, "init", "context"), Told(sim, "init", "context")
    for _ in range(TRIES):
        # GIVEN a sibling with work on the device, and an open capture
        sibling.does("submit", "begin", "submit")
        # WHEN another asks for a region
        holder.tell("enter")
        wait_for(lambda: has_hold(sim))
        # THEN the sibling allocates in the middle of its capture, and ends it
        sibling.does("allocate", "submit", "end")
        # AND the region is exclusive
        holder.answers()
        holder.does("leave")
        if holder.last_record()["exclusive"]:
            return
    raise AssertionError(holder.records())


def test_a_death_beside_a_capture_keeps_nobody_waiting(sim: Krex) -> None:
    sibling = Told(sim, "init", "context", KREX_TEST_STOP_AT="beside-a-long-call:kill")
    holder = Told(sim, "init", "context")
    # GIVEN a shut heavy gate WHEN a sibling with an open capture dies where it passes it
    sibling.does("begin")
    holder.tell("enter")
    wait_for(lambda: has_hold(sim))
    sibling.tell("allocate")
    assert sibling.run.wait(DEADLINE_S) != 0
    # THEN the region is granted, and so is the next one, and nothing is left open
    holder.answers()
    holder.does("leave")
    assert is_exclusive_at_last(holder)


def test_a_capture_that_stays_open_is_not_spoiled_and_the_record_says_why(sim: Krex) -> None:
    # GIVEN a sibling with an open capture WHEN another goes through a region meanwhile
    sibling, holder = Told(sim, "init", "context"), Told(sim, "init", "context")
    sibling.does("submit", "begin")
    holder.does("enter", "leave")
    # THEN it is not exclusive, and the capture is none the worse
    record = holder.last_record()
    assert (record["exclusive"], record["reasons"]) == (False, ["capture_open"])
    sibling.does("submit", "end")


def test_the_holder_s_own_capture_outlasts_its_region(sim: Krex) -> None:
    # GIVEN a capture that is begun inside a region WHEN the region ends before it
    holder = Told(sim, "init", "context")
    holder.does("enter", "submit", "begin", "leave")
    # THEN nobody asks whether the holder's work is done, and the record says that it may not be
    record = holder.last_record()
    assert record["exclusive"] and record["work_at_end"]
    holder.does("submit", "end")
