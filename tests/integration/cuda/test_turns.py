# SPDX-License-Identifier: Apache-2.0
"""Who is served first, where one command's work can end only when another's turn has been."""

from __future__ import annotations

import pytest
from support.command_line import Krex
from support.steps import Command
from support.waiting import wait_for


@pytest.fixture(params=["cuda", "hip"])
def cli(cli: Krex, request: pytest.FixtureRequest) -> Krex:
    cli.env["KREX_TEST_VENDOR"] = request.param
    return cli


def test_a_region_lets_one_go_first_whose_kernel_waits_for_its_host(cli: Krex) -> None:
    # GIVEN a harness whose kernel spins until the host has queued what is timed behind it
    spins = Command(cli, "behind_a_spinning_kernel")
    spins.goes_on("idle")
    # AND another command, which asks for the device now, and waits for that kernel
    other = Command(cli, "short")
    other.tell()
    wait_for(lambda: cli.status()["devices"][0]["hold"])
    # WHEN the first comes to its timing, and asks as well
    spins.goes_on("done")
    # THEN it goes first, and both have the device for themselves
    other.gets("idle")
    other.goes_on("done")
    first, second = spins.ends(), other.ends()
    assert first["marker"] == "events"
    assert [(r["exclusive"], r["reasons"]) for r in (first, second)] == [(True, [])] * 2
    assert first["released_ns"] <= second["granted_ns"]


def test_two_that_wait_for_each_other_go_on_without(cli: Krex) -> None:
    # GIVEN two such harnesses, both with their kernels on the device
    one, two = Command(cli, "behind_a_spinning_kernel"), Command(cli, "behind_a_spinning_kernel")
    one.goes_on("idle")
    two.goes_on("idle")
    # WHEN both come to their timing
    one.tell()
    two.tell()
    one.gets("done")
    two.gets("done")
    # THEN one goes on without the device, and says so; after it the other has it
    one.ends()
    _, records = two.ends_and_says()  # of both
    reasons = [r["reasons"] for r in records if r["schema"] == "krex.region"]
    assert sorted(reasons) == [[], ["sibling_not_drained"]]
