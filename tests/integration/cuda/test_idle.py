# SPDX-License-Identifier: Apache-2.0
"""A mark that nobody wrote into the program gives the device up while it stands idle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.command_line import Krex
from support.steps import Command
from support.waiting import wait_for

from krex.schemas import FOLDER

YIELDED = ["yielded_idle"]


@pytest.fixture(params=["cuda", "hip"])
def cli(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    return cli


def hold(cli: Krex) -> Any:
    return cli.status()["devices"][0]["hold"]


def beside(cli: Krex, way: str, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of a command that is idle at its step, and of another that asks meanwhile."""
    idle, other = Command(cli, way, **env), Command(cli, "short")
    idle.goes_on("idle")
    other.goes_on("idle")
    idle.goes_on("done")
    other.goes_on("done")
    return idle.ends(), other.ends()


def check(cli: Krex, *reports: str) -> dict[str, Any]:
    """What the device says of the records."""
    cli.stop_controller()
    paths = [str(cli.folder / f"{name}.jsonl") for name in reports]
    checked = cli("sim", "check", "--json", str(cli.folder / "device.tsv"), *paths)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    found: dict[str, Any] = json.loads(checked.stdout)
    return found


def test_others_get_the_device_while_a_harness_computes_on_the_host(cli):
    # GIVEN a marked function that times a pair, computes, and times another
    # WHEN somebody else asks for the device while it computes
    record, others = beside(cli, "armed_pairs")
    # THEN that one has it then,
    assert others["exclusive"]
    [earlier] = record["earlier_holds"]
    assert earlier["released_ns"] <= others["granted_ns"]
    assert others["released_ns"] <= record["granted_ns"]
    # and the function's record is one, exclusive: each of its pairs lies in a hold
    assert (record["exclusive"], record["name"]) == (True, "function")
    assert record["timing"]["timed_pairs_inside"] == 2
    assert earlier["hold_id"] != record["hold_id"]
    schema = json.loads((FOLDER / "region-record.schema.json").read_text())
    Draft202012Validator(schema).validate(record)
    # by the device's own word too, of both holds
    assert check(cli, "armed_pairs", "short")["violations"] == []


def test_a_region_may_yield_more_than_once(cli):
    # GIVEN a marked function that times three pairs, and computes between them
    idle = Command(cli, "armed_three_pairs")
    # WHEN others ask for the device each time it computes
    for _ in range(2):
        idle.goes_on("idle")
        other = Command(cli, "short")
        other.goes_on("idle")
        other.goes_on("done")
        other.ends()
    idle.goes_on("done")
    record = idle.ends()
    # THEN it has one record of all its holds, which lie one after the other
    earlier = record["earlier_holds"]
    assert len({record["hold_id"], *(hold["hold_id"] for hold in earlier)}) == 3
    times = [hold[key] for hold in [*earlier, record] for key in ("granted_ns", "released_ns")]
    assert times == sorted(times)
    assert (record["exclusive"], record["timing"]["timed_pairs_inside"]) == (True, 3)
    assert check(cli, "armed_three_pairs", "short")["violations"] == []


def test_a_pair_that_reaches_beyond_its_hold_is_told(cli):
    # GIVEN a marked function that computes on the host between the two events of a pair
    record, others = beside(cli, "armed_open_pair")
    # THEN it yields all the same, and its record says that its timing has a hole
    assert others["exclusive"]
    assert (record["reasons"], len(record["earlier_holds"])) == (YIELDED, 1)
    assert record["timing"]["timed_pairs_inside"] == 0


def test_what_the_hosts_clock_may_time_is_not_vouched_for(cli):
    # GIVEN a marked function that records no events, and computes in the middle
    record, others = beside(cli, "armed_host_clock")
    # THEN it yields, and nobody knows what its number has in it
    assert others["exclusive"]
    assert record["reasons"] == YIELDED


def test_a_function_that_timed_all_before_it_was_idle_is_exclusive(cli):
    # GIVEN a marked function that times, and then only computes
    record, others = beside(cli, "armed_tail")
    # THEN it has the one hold, and the other command has the device before it returns
    assert others["exclusive"]
    assert record["exclusive"]
    assert "earlier_holds" not in record
    assert record["released_ns"] <= others["granted_ns"]
    assert record["timing"]["timed_pairs_inside"] == 1


def test_timed_events_that_are_not_read_yield_too(cli):
    # GIVEN a program that is marked by its events, and computes before it reads them
    record, others = beside(cli, "events_open_pair", KREX_REGION="events")
    # THEN the region ends there, and says so
    assert others["exclusive"]
    assert (record["marker"], record["reasons"]) == ("events", YIELDED)


def test_a_long_kernel_is_not_idle(cli):
    # GIVEN a marked function whose kernel takes longer than what counts as idle
    idle, other = Command(cli, "armed_long_kernel"), Command(cli, "short")
    idle.goes_on("idle")
    # WHEN somebody else asks for the device meanwhile
    other.tell()
    idle.goes_on("done")
    other.gets("idle")
    other.goes_on("done")
    # THEN that one waits for its end
    record, others = idle.ends(), other.ends()
    assert (record["exclusive"], record["work_at_end"]) == (True, False)
    assert "earlier_holds" not in record
    assert record["timing"]["timed_pairs_inside"] == 1
    assert record["hold_s"] > record["timing"]["timed_s"] > 1
    assert record["released_ns"] <= others["granted_ns"]


def test_a_mark_of_the_programs_own_does_not_yield(cli):
    # GIVEN a program in a region of its own, in which it computes on the host
    idle, other = Command(cli, "explicit"), Command(cli, "short")
    idle.goes_on("idle")
    # WHEN somebody else asks for the device, and a marked function would have yielded twice over
    other.tell()
    wait_for(lambda: hold(cli) and hold(cli)["since_s"] > 1)
    idle.goes_on("done")
    other.gets("idle")
    other.goes_on("done")
    # THEN that one waits for its end
    record, others = idle.ends(), other.ends()
    assert record["exclusive"]
    assert "earlier_holds" not in record
    assert record["released_ns"] <= others["granted_ns"]


def test_nobody_yields_to_nobody(cli):
    # GIVEN a marked function that computes on the host, with nobody else on the device
    idle = Command(cli, "armed_pairs")
    idle.goes_on("idle")
    wait_for(lambda: hold(cli) and hold(cli)["since_s"] > 1)
    # THEN it keeps the device
    idle.goes_on("done")
    record = idle.ends()
    assert record["exclusive"]
    assert "earlier_holds" not in record
