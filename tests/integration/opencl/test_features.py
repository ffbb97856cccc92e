# SPDX-License-Identifier: Apache-2.0
"""G1, G2 and G5 beside a process that uses what makes OpenCL hard to drain."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.opencl_pair import REGIONS, inside, run_pair

# A region beside these is exclusive each time.
CERTAIN = (
    "unset",
    "set_inside",
    "chained",
    "many",
    "out_of_order",
    "mapped",
    "transfers",
    "blocked_read",
    "shared_memory",
    "callbacks",
    "native_kernels",
)


@pytest.mark.parametrize("feature", CERTAIN)
def test_a_region_beside_it_is_exclusive(krex, feature):
    found, records = run_pair(krex, feature)
    commands = found["sibling"]["commands"]
    assert [record["reasons"] for record in records] == [[]] * REGIONS
    assert [inside(region, commands) for region in found["regions"]] == [[]] * REGIONS
    assert found["sibling"]["right"]
    assert any(start > found["regions"][-1][1] for start, _ in commands), "it did not go on"


@pytest.mark.parametrize("feature", CERTAIN)
def test_the_check_finds_it_inside_when_nothing_protects(krex, feature):
    found, _ = run_pair(krex, feature, "--exclusive", "none")
    commands = found["sibling"]["commands"]
    assert any(inside(region, commands) for region in found["regions"])
    assert found["sibling"]["right"]


def test_a_callback_in_the_drivers_thread_is_gated_and_nothing_hangs(krex):
    # While it waits at the gate PoCL completes nothing behind it: the drain can't end, and says so.
    found, records = run_pair(krex, "driver_callbacks")
    commands = found["sibling"]["commands"]
    assert {reason for r in records for reason in r["reasons"]} <= {"sibling_not_drained"}
    for region, record in zip(found["regions"], records, strict=True):
        assert not (record["exclusive"] and inside(region, commands))
    assert found["sibling"]["right"]


def test_a_command_of_its_own_is_drained_and_frozen_with_work_behind_a_user_event(krex):
    here = Path(__file__).parent
    command = ("run", "--", sys.executable, str(here / "siblings.py"), "unset")
    sibling = krex.start(*command, stdin=subprocess.PIPE)
    assert sibling.stdout.readline() == "ready\n"
    report = str(krex.folder / "holder.jsonl")
    holder = krex.python(here / "holder.py", str(REGIONS), options=("--report", report))
    regions = json.loads(holder.communicate(timeout=60)[0].splitlines()[-1])
    found = json.loads(sibling.communicate("end\n", timeout=60)[0])
    records = krex.records("holder.jsonl")
    assert [record["reasons"] for record in records] == [[]] * REGIONS
    assert [record["siblings"]["drained"] for record in records] == [1] * REGIONS
    assert [inside(region, found["commands"]) for region in regions] == [[]] * REGIONS
    assert found["right"] and sibling.returncode == 0
