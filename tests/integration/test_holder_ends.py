# SPDX-License-Identifier: Apache-2.0
"""G3, G4, G6: a holder that crashes, hangs or just ends gives the device back, and says so."""

import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("how", "reason"),
    [("crash", "process_died"), ("exit", "process_died"), ("hang", "max_hold_exceeded")],
)
def test_the_device_comes_back_within_a_second(krex, how, reason):
    holder = krex.program(
        "--max-hold", "0.5", "--report", str(krex.folder / "h.jsonl"), regions=1, how=how
    )
    assert holder.stdout.readline() == "inside\n"
    # GIVEN a command that starts while the device is held (born frozen)
    began = time.monotonic()
    sibling = krex.program("--report", str(krex.folder / "s.jsonl"), regions=1)
    assert sibling.wait(30) == 0
    assert krex.records("s.jsonl")[0]["exclusive"]
    # a hang is cut at its limit, not at its end (5 s)
    assert time.monotonic() - began < 5 or how != "hang"
    if how != "hang":
        assert holder.wait(10) == (137 if how == "crash" else 0)
    record = krex.records("h.jsonl")[0]
    assert (record["exclusive"], record["reasons"]) == (False, [reason])


def test_a_crash_is_the_command_s_exit_status(krex):
    assert krex.program(regions=1, how="crash").wait(30) == 137


def test_a_frozen_command_stays_frozen_when_its_krex_run_is_killed(krex):
    run = [sys.executable, "-m", "krex.cli", "run", "--"]
    sibling = krex.popen(*run, "sh", "-c", "echo up; sleep 2; :")
    assert sibling.stdout.readline() == "up\n"
    # GIVEN a sibling that is frozen because another command holds the device
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1, how="hang")
    assert holder.stdout.readline() == "inside\n"
    sibling.kill()
    time.sleep(0.5)
    # THEN nothing of the sibling ran: its group stands still until the region's end
    [group] = [c for c in krex.status()["commands"] if c["frozen"]]
    events = Path(group["cgroup"], "cgroup.events").read_text()
    assert "frozen 1" in events and "populated 1" in events
    assert holder.wait(30) == 0
    assert krex.records("h.jsonl")[0]["exclusive"]
    deadline = time.monotonic() + 10
    while Path(group["cgroup"]).exists():
        assert time.monotonic() < deadline, "the group outlived its processes"
        time.sleep(0.05)


def test_a_region_says_whether_work_was_left(krex):
    assert krex.program("--report", str(krex.folder / "r.jsonl"), regions=2).wait(30) == 0
    assert [r["work_at_end"] for r in krex.records("r.jsonl")] == [False, False]


@pytest.mark.parametrize("options", [("--exclusive", "command"), ()])
def test_what_is_not_there_is_refused_not_ignored(krex, options):
    run = [sys.executable, "-m", "krex.cli", "run", *options, "--", "true"]
    child = krex.popen(*run, KREX_REGION="auto" if options else "whole")
    assert child.wait(30) == 125


def test_the_next_controller_thaws_what_a_dead_one_left(krex):
    run = [sys.executable, "-m", "krex.cli", "run", "--"]
    sibling = krex.popen(*run, "sh", "-c", "echo up; sleep 1; exit 7")
    assert sibling.stdout.readline() == "up\n"
    holder = krex.program(regions=1, how="hang")
    assert holder.stdout.readline() == "inside\n"
    [left] = [c for c in krex.status()["commands"] if c["frozen"]]
    # WHEN the controller and the frozen command's krex run die together
    krex.serve.kill()
    sibling.kill()
    krex.serve.wait()
    krex.start_controller()
    # THEN the command runs on and ends
    events = Path(left["cgroup"], "cgroup.events")
    deadline = time.monotonic() + 10
    while events.exists() and "populated 1" in events.read_text():
        assert time.monotonic() < deadline, "it stayed frozen"
        time.sleep(0.05)
    assert holder.wait(30) == 0
    if events.exists():
        events.parent.rmdir()
