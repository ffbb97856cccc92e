# SPDX-License-Identifier: Apache-2.0
"""G3, G4, G6: a holder that crashes, hangs or just ends gives the device back, and says so."""

import json
import time
from pathlib import Path

import pytest
from support.waiting import DEADLINE_S, wait_for

BUSY = Path(__file__).with_name("process_program.py")
MAX_HOLD_S = 0.5
NS = 10**9


@pytest.mark.parametrize(
    ("how", "reason", "status"),
    [("crash", "process_died", 137), ("exit", "process_died", 0), ("hang", "max_hold_exceeded", 0)],
)
def test_the_device_comes_back_within_a_second(krex, how, reason, status):
    # GIVEN a sibling that never stops submitting, and a holder that does not leave
    sibling = krex.python(BUSY, "busy")
    assert sibling.stdout.readline() == "busy\n"
    options = ("--max-hold", str(MAX_HOLD_S), "--report", str(krex.folder / "h.jsonl"))
    holder = krex.program(*options, regions=1, how=how)
    assert holder.stdout.readline() == "inside\n"
    inside_ns = int(holder.stdout.readline())
    assert holder.wait(DEADLINE_S) == status
    # THEN the sibling's next kernel ran within a second of the death, or of the limit,
    kernels = json.loads(sibling.communicate(timeout=DEADLINE_S)[0])["kernels"]
    over_ns = inside_ns + (MAX_HOLD_S * NS if how == "hang" else 0)
    assert min(start for start, _ in kernels if start > inside_ns) < over_ns + NS
    # the record says what happened,
    [record] = krex.records("h.jsonl")
    assert (record["exclusive"], record["reasons"]) == (False, [reason])
    assert record["siblings"]["commands_frozen"] == 1
    assert how != "hang" or record["hold_s"] >= MAX_HOLD_S
    # and nothing is left of the hold.
    [device] = krex.status()["devices"]
    assert (device["gate"], device["hold"], device["queue"]) == ("open", None, [])


@pytest.mark.parametrize("how", ["crash", "exit", "hang"])
def test_who_waits_gets_the_device_of_a_holder_that_does_not_leave(krex, how):
    holder = krex.program("--max-hold", str(MAX_HOLD_S), regions=1, how=how)
    assert holder.stdout.readline() == "inside\n"
    # GIVEN a command that starts while the device is held (born frozen)
    sibling = krex.program("--report", str(krex.folder / "s.jsonl"), regions=1)
    assert sibling.wait(DEADLINE_S) == 0
    assert krex.records("s.jsonl")[0]["exclusive"]


def test_a_crash_is_the_command_s_exit_status(krex):
    assert krex.program(regions=1, how="crash").wait(30) == 137


def test_a_frozen_command_stays_frozen_when_its_krex_run_is_killed(krex):
    sibling = krex.popen(*krex.base, "run", "--", "sh", "-c", "echo up; read line")
    assert sibling.stdout.readline() == "up\n"
    # GIVEN a sibling that is frozen because another command holds the device
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    # WHEN its krex run is killed, and it could end
    sibling.kill()
    sibling.stdin.close()
    time.sleep(0.3)
    # THEN nothing of it ran: its group stands still until the region's end
    [group] = [c for c in krex.status()["commands"] if c["frozen"]]
    events = Path(group["cgroup"], "cgroup.events").read_text()
    assert "frozen 1" in events and "populated 1" in events
    holder.communicate("leave\n", timeout=DEADLINE_S)
    assert krex.records("h.jsonl")[0]["exclusive"]
    wait_for(lambda: not Path(group["cgroup"]).exists())


@pytest.mark.parametrize(("how", "left"), [("", False), ("late", True)])
def test_a_region_says_whether_work_was_left(krex, how, left):
    child = krex.program("--report", str(krex.folder / "r.jsonl"), regions=2, how=how)
    child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 0
    assert [r["work_at_end"] for r in krex.records("r.jsonl")] == [left, left]


def test_the_next_controller_thaws_what_a_dead_one_left(krex):
    sibling = krex.popen(*krex.base, "run", "--", "sh", "-c", "echo up; read line")
    assert sibling.stdout.readline() == "up\n"
    holder = krex.program(regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    [left] = [c for c in krex.status()["commands"] if c["frozen"]]
    # WHEN the controller and the frozen command's krex run die together
    krex.serve.kill()
    sibling.kill()
    sibling.stdin.close()
    krex.serve.wait()
    krex.start_controller()
    # THEN the command runs on and ends
    events = Path(left["cgroup"], "cgroup.events")
    wait_for(lambda: not (events.exists() and "populated 1" in events.read_text()))
    holder.communicate("leave\n", timeout=DEADLINE_S)
    assert holder.returncode == 0
    if events.exists():
        events.parent.rmdir()
