# SPDX-License-Identifier: Apache-2.0
"""G1 and G2, by the word of the device: what it did and when, beside what the records claim.

Sixteen programs that do anything in any order. The simulated device logs every interval, and
`krex sim check` looks for work of somebody else in a region. For longer: tests/stress/test_soak.py.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.fleet import VENDORS, Fleet, Size, build_random_program

ALL = Size()
ONE_THREAD = Size(commands=8, threads=1, regions=14)
REGIONS = ALL.commands * ALL.threads * ALL.regions
# A sibling did not come to a stop within 0.1 s: this machine is busy with other things. It costs
# every region that waited for that hold, which may be one of each thread of a command.
BUSY_MACHINE = ["freeze_incomplete"]


@pytest.fixture(scope="module", params=VENDORS)
def random_program(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    return build_random_program(tmp_path_factory.mktemp("random"), request.param)


@pytest.fixture
def fleet(cli: Krex, random_program: Path) -> Fleet:
    return Fleet(cli, random_program, ALL)


def assert_nearly_all_are_exclusive(records: list[dict[str, Any]]) -> None:
    """All but one, each with a reason; but not those for which the machine had no time."""
    reasons = [r["reasons"] for r in records if not r["exclusive"]]
    assert all(reasons)
    assert len([why for why in reasons if why != BUSY_MACHINE]) <= 1, reasons
    assert len(reasons) <= len(records) / 4, reasons


@pytest.mark.parametrize("seed", [0, None], ids=["the same as ever", "another"])
def test_no_work_of_another_is_on_the_device_in_a_region(fleet, seed):
    # GIVEN 16 commands, each of 2 threads that submit anything in any order
    # WHEN they run at once, and mark 224 regions between them
    seed = random.randrange(1_000_000) if seed is None else seed
    print("seed:", seed)
    fleet.run(seed=seed)
    fleet.end()
    records = fleet.records()
    exclusive = [r for r in records if r["exclusive"]]
    # THEN nearly all were exclusive, and the others say why
    assert len(records) == REGIONS
    assert_nearly_all_are_exclusive(records)
    # AND the device saw nobody else in any of them
    status, found = fleet.check(*fleet.reports)
    assert (status, found["violations"], found["exclusive"]) == (0, [], len(exclusive))
    # AND not by the programs' own clock either
    if len(exclusive) == len(records):
        assert fleet.check(fleet.claims())[1]["violations"] == []


def test_the_same_commands_without_the_gate_are_caught(fleet):
    # GIVEN the same commands, which nothing keeps apart
    fleet.run("--exclusive", "none")
    fleet.end()
    # WHEN their regions are checked as if they had been exclusive
    status, found = fleet.check(fleet.claims())
    # THEN most of them had company
    assert status == 1
    assert len(found["violations"]) > found["regions"] / 2


def test_a_kernel_in_a_region_takes_what_it_takes_alone(cli, random_program):
    # GIVEN programs whose regions have launches of a known duration in device time
    fleet = Fleet(cli, random_program, ONE_THREAD)
    # WHEN eight of them run at once
    fleet.run()
    fleet.end()
    assert_nearly_all_are_exclusive(fleet.records())
    # THEN each of these launches took just that on the device
    assert all(taken == wanted for wanted, taken in fleet.launches(in_exclusive=True))


def test_the_same_kernels_without_the_gate_take_longer(cli, random_program):
    fleet = Fleet(cli, random_program, ONE_THREAD)
    fleet.run("--exclusive", "none")
    fleet.end()
    launches = fleet.launches()
    longer = [taken for wanted, taken in launches if taken > 1.5 * wanted]
    assert len(longer) > len(launches) / 20
