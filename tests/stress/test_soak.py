# SPDX-License-Identifier: Apache-2.0
"""`make soak`: sixteen programs do anything in any order, a million submissions for each vendor.

Nobody is beside an exclusive region, nothing is left over or grows, and nobody waits for ever.
KREX_TEST_SUBMISSIONS is how many, and KREX_TEST_SEED what it said that it began with; `make soak
PYTEST_ARGS='-k hip'` is one vendor alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.command_line import Krex
from support.fleet import VENDORS, Fleet, Size, build_random_program
from support.waiting import short_directory, wait_for

from krex.protect.freezer import find_base

SUBMISSIONS = int(os.environ.get("KREX_TEST_SUBMISSIONS", "0"))
ROUNDS = 10  # so that what grows is seen to grow
# What an operation of random_program.c submits, about; the rest of its work are regions.
PER_OPERATION = 0.9
A_REGION_EACH = 25  # operations
LIMIT_S = 1800.0  # of a round: whoever needs longer waits for ever
GROWTH_KB = 4096  # of a process that has seen one round, in all the others: an allocator's noise

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(not SUBMISSIONS, reason="takes minutes: make soak"),
    pytest.mark.timeout(ROUNDS * LIMIT_S),
]


class Footprint(NamedTuple):
    """What a process has."""

    descriptors: int
    kilobytes: int

    @classmethod
    def of(cls, pid: int) -> Footprint:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        size = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
        return cls(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()), int(size))

    def is_as(self, earlier: Footprint) -> bool:
        grown = self.kilobytes - earlier.kilobytes
        return self.descriptors == earlier.descriptors and grown < GROWTH_KB


def left_over(controller: int) -> list[Path]:
    """Shared memory and cgroups that this controller made."""
    base = find_base()
    groups = list(base.glob(f"krex-c-{controller}-*")) if base else []
    return groups + list(Path("/dev/shm").glob(f"krex-{controller}-*"))


@pytest.fixture(params=VENDORS)
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    operations = max(int(SUBMISSIONS / ROUNDS / PER_OPERATION / 32), 1)
    size = Size(operations=operations, regions=max(operations // A_REGION_EACH, 1))
    with short_directory() as directory:
        krex = Krex(directory)
        try:
            yield Fleet(krex, build_random_program(tmp_path, request.param), size)
        finally:
            krex.close()


def test_long_runs_break_nothing_and_leave_nothing(fleet: Fleet) -> None:
    seed = int(os.environ.get("KREX_TEST_SEED", random.randrange(1_000_000_000)))
    print(f"KREX_TEST_SEED={seed}")
    # GIVEN a controller that stays
    fleet.krex.start_controller()
    footprints = []
    # WHEN sixteen programs run at once, one round after the other, until so much was submitted
    while sum(said["submissions"] for said in fleet.said) < SUBMISSIONS:
        fleet.run(seed=seed + len(fleet.said), limit_s=LIMIT_S)
        wait_for(lambda: not fleet.krex.status()["commands"])
        status = fleet.krex.status()
        footprints.append([Footprint.of(status[who]["pid"]) for who in ("controller", "simulator")])
    fleet.end()
    records = fleet.records()
    exclusive = [record for record in records if record["exclusive"]]
    submissions = sum(said["submissions"] for said in fleet.said)
    why = Counter(reason for record in records for reason in record["reasons"])
    print(
        f"{submissions} submissions, {len(records)} regions, {len(exclusive)} exclusive",
        *why.items(),
    )
    print(*footprints, sep="\n")
    print("programs grew by", max(said["grown_kb"] for said in fleet.said), "KiB at most")
    # THEN the device saw nobody beside the regions, nearly all of which are exclusive
    status, found = fleet.check(*fleet.reports)
    assert (status, found["violations"]) == (0, [])
    assert len(exclusive) == found["exclusive"] >= 0.99 * len(records)
    # AND nothing has grown since the first round, nor any of the programs, and nothing is left
    for first, last in zip(footprints[0], footprints[-1], strict=True):
        assert last.is_as(first)
    assert max(said["grown_kb"] for said in fleet.said) < GROWTH_KB
    assert left_over(fleet.krex.serve.pid) == []
