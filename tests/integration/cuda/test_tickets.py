# SPDX-License-Identifier: Apache-2.0
"""Contexts are made one at a time on the machine, and none while somebody acquires a region."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from support.command_line import Krex
from support.stop_points import StopPoints
from support.told import Told
from support.waiting import DEADLINE_S, wait_for

TRIES = 5  # a machine without a free core may miss a deadline
# A thread that waits for a ticket looks again ten times a second.
LOOKS = 3


@pytest.fixture(params=["cuda", "hip"])
def sim(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    cli.start_controller()
    return cli


@pytest.fixture
def points(cli: Krex) -> Iterator[StopPoints]:
    points = StopPoints(cli.folder / "points.sock")
    yield points
    points.close()


def at(point: str, points: StopPoints) -> dict[str, str]:
    return {"KREX_TEST_STOP_AT": points.action.replace("*", point)}


def await_looks(points: StopPoints) -> None:
    """Until somebody has looked for its ticket so often, in vain."""
    for _ in range(LOOKS):
        points.arm("ticket-awaited")
        points.wait().go_on()
    points.arm("")


@pytest.fixture(params=["killed", "done"])
def ending(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_context_waits_for_another_one_on_another_device(
    sim: Krex, points: StopPoints, ending: str
) -> None:
    # GIVEN a process that has a ticket, and has not made its context yet
    owners = StopPoints(sim.folder / "owners.sock")
    owners.arm("ticket-taken")
    owner = Told(sim, "init", **at("ticket-taken", owners))
    owner.tell("context")
    reached = owners.wait()
    # WHEN another one makes a context THEN it waits
    other = Told(sim, "init", device=1, **at("ticket-awaited", points))
    other.tell("context")
    await_looks(points)
    # WHEN the first one ends, or has made its own THEN the other goes on
    over_ns = time.monotonic_ns()
    if ending == "killed":
        os.kill(reached.pid, signal.SIGKILL)
    reached.go_on()
    assert other.answers() > over_ns
    if ending == "done":
        owner.answers()
    owners.close()


def test_who_dies_while_it_waits_is_not_waited_for(sim: Krex, points: StopPoints) -> None:
    # GIVEN one that has a ticket, one that dies waiting for it, and one behind them
    points.arm("ticket-taken")
    owner = Told(sim, "init", **at("ticket-taken", points))
    owner.tell("context")
    reached = points.wait()
    lost = Told(sim, "init", KREX_TEST_STOP_AT="ticket-awaited:kill")
    lost.tell("context")
    assert lost.run.wait(DEADLINE_S) != 0
    last = Told(sim, "init", device=1)
    last.tell("context")
    # WHEN the first one has made its context THEN so does the last one
    reached.go_on()
    owner.answers()
    last.answers()


def test_a_context_waits_for_a_region_that_is_acquired(sim: Krex, points: StopPoints) -> None:
    sibling, holder = Told(sim, "init", "context"), Told(sim, "init", "context")
    for _ in range(TRIES):
        # GIVEN somebody who acquires a region, which an open capture holds up
        sibling.does("begin")
        holder.tell("enter")
        wait_for(lambda: any(device["hold"] for device in sim.status()["devices"]))
        # WHEN a context is made on another device THEN it waits
        other = Told(sim, "init", device=1, **at("ticket-awaited", points))
        other.tell("context")
        await_looks(points)
        # UNTIL the region is granted
        sibling.does("end")
        made_ns = other.answers()
        holder.answers()
        holder.does("leave")
        record = holder.last_record()
        if record["exclusive"]:
            assert made_ns > record["granted_ns"]
            return
    raise AssertionError(holder.records())
