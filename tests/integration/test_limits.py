# SPDX-License-Identifier: Apache-2.0
"""How long a region waits, how a wait ends early, and what --require makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

PROGRAM = Path(__file__).with_name("process_program.py")


def waits_behind(krex: Krex, *options: str) -> subprocess.Popen[str]:
    """A region behind one that lasts until "leave": of its own command, so that it isn't frozen."""
    report = ("--report", str(krex.folder / "r.jsonl"))
    child = krex.python(PROGRAM, "waits-behind", options=(*report, *options))
    assert child.stdout.readline() == "first\n"
    return child


def leave(krex: Krex, child: subprocess.Popen[str], status: int = 0) -> dict[str, dict]:
    """Let the first region end, and the command; the records by name."""
    out, _ = child.communicate("leave\n", timeout=DEADLINE_S)
    assert (child.returncode, out) == (status, "over\n")
    return {r["name"]: r for r in krex.records("r.jsonl")}


@pytest.mark.parametrize("limit_s", [0, 0.2])
def test_a_region_goes_on_after_max_wait(krex: Krex, limit_s: float) -> None:
    child = waits_behind(krex, "--max-wait", str(limit_s))
    # WHEN another region lasts longer than the limit, THEN it goes on beside it,
    assert child.stdout.readline() == "second\n"
    assert krex.status()["devices"][0]["hold"] is not None
    # and says that it was not exclusive; the other one was.
    records = leave(krex, child)
    second = records["second"]
    assert (second["exclusive"], second["reasons"]) == (False, ["max_wait_exceeded"])
    assert second["wait_s"] >= limit_s and "hold_id" not in second
    assert records["first"]["exclusive"]


@pytest.mark.parametrize("regions", [1, 3])
def test_a_free_device_is_had_without_waiting(krex: Krex, regions: int) -> None:
    # The end of one's own region, which takes the controller a moment, is no wait for others.
    options = ("--max-wait", "0", "--report", str(krex.folder / "r.jsonl"))
    assert krex.program(*options, regions=regions).wait(DEADLINE_S) == 0
    assert [r["reasons"] for r in krex.records("r.jsonl")] == [[]] * regions


def test_max_wait_includes_what_siblings_have_outstanding(krex: Krex) -> None:
    options = ("--max-wait", "0.2", "--report", str(krex.folder / "r.jsonl"))
    child = krex.python(PROGRAM, "asked", options=options)
    assert child.stdout.readline() == "ready\n"
    # GIVEN a sibling whose kernels run for more than a second
    sibling = krex.python(PROGRAM, "loaded")
    assert sibling.stdout.readline() == "loaded\n"
    child.communicate("go\n", timeout=DEADLINE_S)
    sibling.communicate("", timeout=DEADLINE_S)
    [record] = krex.records("r.jsonl")
    assert (record["exclusive"], record["reasons"]) == (False, ["max_wait_exceeded"])
    assert record["wait_s"] >= 0.2


def test_ctrl_c_ends_a_wait(krex: Krex) -> None:
    child = waits_behind(krex)
    # GIVEN a region that waits
    [waiting] = wait_for(lambda: [w for d in krex.status()["devices"] for w in d["queue"]])
    os.kill(waiting["pid"], signal.SIGINT)
    # THEN it ends while the other one still goes on,
    assert child.stdout.readline() == "interrupted\n"
    [device] = krex.status()["devices"]
    assert device["hold"] is not None and device["queue"] == []
    # and its record says so.
    records = leave(krex, child)
    second = records["second"]
    assert (second["exclusive"], second["reasons"]) == (False, ["left_while_waiting"])
    assert second["pid"] == waiting["pid"] and records["first"]["exclusive"]


def test_a_process_that_dies_waiting_is_recorded(krex: Krex) -> None:
    child = waits_behind(krex)
    [waiting] = wait_for(lambda: [w for d in krex.status()["devices"] for w in d["queue"]])
    os.kill(waiting["pid"], signal.SIGKILL)
    wait_for(lambda: krex.status()["devices"][0]["queue"] == [])
    child.communicate("leave\n", timeout=DEADLINE_S)
    records = {r["name"]: r["reasons"] for r in krex.records("r.jsonl")}
    assert "process_died" in records["second"] and records["first"] == []


def test_require_fails_a_run_with_a_region_that_was_not_exclusive(krex: Krex) -> None:
    child = waits_behind(krex, "--require", "--max-wait", "0")
    assert child.stdout.readline() == "second\n"
    # The command itself runs to its end.
    records = leave(krex, child, status=125)
    assert not records["second"]["exclusive"]


def test_require_is_content_with_exclusive_regions(krex: Krex) -> None:
    words = [krex.python_path, str(PROGRAM), "leaf"]
    result = krex("run", "--require", "--report", "r", "--", *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert [r["exclusive"] for r in krex.records("r")] == [True, True]


def test_require_keeps_the_exit_status_of_a_command(krex: Krex) -> None:
    result = krex("run", "--require", "--", "sh", "-c", "exit 3")
    assert (result.returncode, result.stderr) == (3, "")
