# SPDX-License-Identifier: Apache-2.0
"""`--protect` on a CPU, and what a record says of who had the device from when to when."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.command_line import Krex
from support.sandbox import needs_freezer

INSIDE = """
import krex, os, time
with krex.region("outer"):
    print(time.monotonic_ns(), flush=True)
    child = os.fork()
    with krex.region("inner"):  # of the child, a region of its own in the same hold
        print(os.getpid(), time.monotonic_ns(), flush=True)
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    print(time.monotonic_ns(), flush=True)
"""


def run(cli: Krex, script: str, *options: str) -> tuple[list[int], list[dict[str, Any]]]:
    """The numbers that a Python program printed, and its records."""
    report = cli.folder / "r.jsonl"
    words = ["run", "--report", str(report), *options, "--", cli.python_path, "-c", script]
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    lines = report.read_text().splitlines()
    return [int(word) for word in done.stdout.split()], [json.loads(line) for line in lines]


def test_the_interval_of_a_record_lies_around_what_ran_inside(cli: Krex) -> None:
    # WHEN a process and its child are in a region
    (began, *middle, ended), records = run(cli, INSIDE)
    times, pids = sorted(middle)[-2:], set(middle[::2])
    assert {record["name"] for record in records} == {"outer", "inner"}
    for record in records:
        assert record["exclusive"], record["reasons"]
        # THEN both could submit, and nobody else, and the interval has it all
        assert set(record["holder_pids"]) == pids
        assert record["granted_ns"] <= times[1] <= ended <= record["released_ns"]
        assert "simulated" not in record and record["protect"] == "freeze"
    outer = next(record for record in records if record["name"] == "outer")
    assert outer["granted_ns"] <= began


def test_what_never_had_the_device_has_no_interval(cli: Krex) -> None:
    _, records = run(cli, INSIDE, "--exclusive", "none")
    for record in records:
        assert not {"granted_ns", "released_ns", "holder_pids"}.intersection(record)


@needs_freezer
@pytest.mark.parametrize("level", ["gate", "pin", "freeze"])
def test_on_a_cpu_only_freezing_makes_a_region_exclusive(cli: Krex, level: str) -> None:
    _, records = run(cli, INSIDE, "--protect", level)
    reasons = [] if level == "freeze" else ["protect_too_low"]
    assert [record["reasons"] for record in records] == [reasons] * 2
    assert {record["protect"] for record in records} == {level}


def test_a_command_that_is_alone_has_nobody_to_freeze(cli: Krex) -> None:
    _, records = run(cli, "", "--protect", "gate", "--exclusive", "command")
    assert [(r["exclusive"], r["protect"]) for r in records] == [(True, "gate")]
