# SPDX-License-Identifier: Apache-2.0
"""How long a region waits, how a wait ends early, and what --require makes of it."""

from __future__ import annotations

import os
import pty
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


def test_require_is_not_content_with_no_region(krex: Krex) -> None:
    for environment in ({}, {"KREX_REGION": "none"}):
        result = krex("run", "--require", "--", "echo", "ran", env=krex.env | environment)
        assert (result.returncode, result.stdout) == (125, "ran\n")
        assert "no region ran" in result.stderr
    result = krex("run", "--require", "--", "true", env=krex.env | {"KREX_DISABLE": "1"})
    assert result.returncode == 125 and "KREX_DISABLE" in result.stderr


def test_require_says_what_to_do_about_the_reason(krex: Krex) -> None:
    words = [krex.python_path, str(PROGRAM), "leaf"]
    result = krex("run", "--require", "--exclusive", "none", "--", *words)
    assert result.returncode == 125
    assert "2 of 2 regions not exclusive: exclusive_none" in result.stderr
    assert "Leave that option out" in result.stderr


@pytest.mark.parametrize("value", ["wohle", "WHOLE"])
def test_a_misspelt_region_is_a_usage_error(krex: Krex, value: str) -> None:
    result = krex("run", "--", "echo", "ran", env=krex.env | {"KREX_REGION": value})
    assert (result.returncode, result.stdout) == (2, "")
    assert f"KREX_REGION: '{value}' is none of its items" in result.stderr


def test_a_frozen_command_can_be_interrupted(krex: Krex) -> None:
    # GIVEN a command that is frozen for another one's region, and would handle the signal itself
    handles = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    frozen = krex.start("run", "--", krex.python_path, "-c", handles)
    assert frozen.stdout.readline() == "ready\n"
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    # WHEN somebody presses Ctrl-C THEN it acts while the region goes on,
    frozen.send_signal(signal.SIGINT)
    assert frozen.wait(DEADLINE_S) == 9
    assert krex.status()["devices"][0]["gate"] == "closed"
    holder.communicate("go\n", timeout=DEADLINE_S)
    # and the record of the region says so.
    [record] = krex.records("h.jsonl")
    assert record["siblings"]["commands_thawed_for_a_signal"] == 1


def test_a_closed_terminal_ends_the_command(krex: Krex) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        # The session's leader: nobody else is told.
        words = [*krex.base, "run", "--", "sh", "-c", "echo ready; sleep 60; :"]
        os.execve(words[0], words, krex.env)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    wait_for(lambda: not krex.status()["commands"])
