# SPDX-License-Identifier: Apache-2.0
"""CPU slices end to end: where a command's threads may run, from exec to the end of its regions.

A machine with fewer cores than a slice needs is given one by KREX_TEST_PLAN. What the kernel says
of a thread is what counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, ended, wait_for

from krex.launch.cores import give_back
from krex.protect import pin
from krex.protect.processes import below

PROGRAM = Path(__file__).with_name("cores_program.py")
CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="two CPUs are needed to see a difference")

COMMANDS, RESERVED, ALL = set(CPUS[:-1]), {CPUS[-1]}, set(CPUS)


class Told:
    """A command on a device, told what to do."""

    def __init__(
        self, krex: Krex, name: str, *before: str, device: str = "sim:1", **env: str
    ) -> None:
        self.report = krex.folder / f"{name}.jsonl"
        options = ["run", "-q", "--device", device, "--report", str(self.report)]
        command = [*before, *krex.base, *options, "--", krex.python_path, str(PROGRAM)]
        self.run = krex.popen(*command, **env)
        self.pid = int(self._answer())

    def _answer(self) -> str:
        line = self.run.stdout.readline()
        assert line, "the command ended"
        return line

    def __call__(self, *words: str | int) -> Any:
        self.run.stdin.write(" ".join(map(str, words)) + "\n")
        self.run.stdin.flush()
        return json.loads(self._answer())

    def records(self) -> list[dict[str, Any]]:
        """End it; all its records."""
        self.run.stdin.close()
        assert self.run.wait(DEADLINE_S) == 0
        return [json.loads(line) for line in self.report.read_text().splitlines()]

    def record(self) -> dict[str, Any]:
        [record] = self.records()
        return record


def start(krex: Krex, **env: str) -> Krex:
    """Start a controller of a machine with one slice, whose last CPU is reserved."""
    plan = f"sim:1={','.join(map(str, CPUS))}/{CPUS[-1]}"
    before = krex.env
    krex.env = before | {"KREX_TEST_PLAN": plan} | env
    krex.start_controller()
    krex.env = before
    return krex


@pytest.fixture
def sliced(cli: Krex) -> Krex:
    return start(cli)


def mask(tid: int) -> set[int]:
    return os.sched_getaffinity(tid)


def on(cpus: set[int], *tids: int) -> bool:
    return all(mask(tid) == cpus for tid in tids)


def test_a_command_runs_on_its_slice_and_its_region_on_the_reserved_cpus(sliced):
    # GIVEN a command with another thread that is no part of the region
    command = Told(sliced, "a")
    bystander = command("thread")
    assert on(COMMANDS, command.pid, bystander, command.run.pid)
    # WHEN it is in a region, THEN the region's thread, and what that creates, has the reserved ones
    command("enter")
    born, child = command("thread"), command("fork")
    assert on(RESERVED, command.pid, born, child) and on(COMMANDS, bystander)
    # AND after it each of them has what there was before
    command("leave")
    wait_for(lambda: on(COMMANDS, command.pid, born, child))
    assert on(COMMANDS, bystander)
    # AND the record says all of it
    record = command.record()
    assert record["exclusive"], record["reasons"]
    assert record["handshake"]["pin_s"] >= 0
    assert record["cpus"] == {
        "slice": sorted(COMMANDS),
        "reserved": sorted(RESERVED),
        "notes": [],
        "pinned": 1,
        "pin_failed": 0,
        "changed": 0,
        "guessed": 0,
    }


def test_the_controller_leaves_the_reserved_cpus(sliced):
    assert sliced("run", "--device", "sim:1", "--", "true").returncode == 0
    assert on(COMMANDS, sliced.controller_pid())


def test_one_region_after_another(sliced):
    command = Told(sliced, "a")
    for _ in range(3):
        command("enter")
        assert on(RESERVED, command.pid)
        command("leave")
        wait_for(lambda: on(COMMANDS, command.pid))
    records = command.records()
    assert [r["cpus"]["pinned"] for r in records if r["exclusive"]] == [1, 1, 1]


def test_more_threads_than_reserved_cpus_are_not_all_pinned(sliced):
    # GIVEN a thread in its region, on the one CPU that is reserved
    command = Told(sliced, "a")
    command("enter")
    # WHEN another thread of the process enters one
    other = command("region_thread")
    # THEN it does not push the first one off
    assert on(RESERVED, command.pid)
    command("leave")
    records = command.records()
    assert {r["name"] for r in records} == {"timed", "other"} and other
    assert ["too_many_threads"] in [r["cpus"]["notes"] for r in records]


def test_threads_that_ended_leave_room_for_others(sliced):
    # GIVEN one hold, that of the whole command, in which one thread after another has a region
    command = Told(sliced, "a", KREX_REGION="whole")
    for _ in range(3):
        command("short_region")
    # THEN each is pinned in its turn
    records = command.records()
    assert [r["cpus"]["notes"] for r in records] == [[]] * 4
    assert {r["cpus"]["pinned"] for r in records} == {3}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a pid namespace")
def test_a_command_in_a_pid_namespace_of_its_own(sliced):
    # GIVEN a command that numbers its processes otherwise than the controller
    command = Told(sliced, "a", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    pids = below([command.run.pid])
    [pid] = [p for p in pids if pin.tids_here(p, [command.pid]) == [p] != [command.pid]]
    assert on(COMMANDS, pid)
    # WHEN it is in a region THEN it is that very thread that is pinned
    command("enter")
    assert on(RESERVED, pid)
    command("leave")
    wait_for(lambda: on(COMMANDS, pid))
    assert command.record()["cpus"]["pinned"] == 1


def test_a_thread_that_chose_other_cpus_in_its_region_keeps_them(sliced):
    command = Told(sliced, "a")
    command("enter")
    command("set", *sorted(ALL))
    command("leave")
    record = command.record()
    assert record["cpus"]["changed"] == 1


def test_taskset_is_respected(sliced):
    # GIVEN a user who allows one CPU of the slice only, and not the reserved one
    first = CPUS[0]
    command = Told(sliced, "a", "taskset", "-c", str(first))
    # WHEN it is in a region, THEN it is still there
    command("enter")
    assert on({first}, command.pid)
    command("leave")
    record = command.record()
    assert record["exclusive"], record["reasons"]
    assert record["cpus"]["slice"] == [first] and "pinned" not in record["cpus"]
    assert record["cpus"]["notes"] == ["reserved_not_allowed"]


def test_taskset_to_what_is_reserved_leaves_no_slice(sliced):
    command = Told(sliced, "a", "taskset", "-c", str(CPUS[-1]))
    command("enter")
    assert on(RESERVED, command.pid)
    command("leave")
    assert command.record()["cpus"] == {"no_slice": "outside_affinity"}


def test_a_command_that_widened_its_affinity_is_a_reason(sliced):
    # GIVEN a command one of whose processes may run on the reserved CPU, too
    command = Told(sliced, "a")
    helper = command("fork")
    os.sched_setaffinity(helper, ALL)
    # WHEN it has a region, THEN that is not exclusive, and nothing stays pinned
    command("enter")
    command("leave")
    wait_for(lambda: on(COMMANDS, command.pid))
    # AND once that one is back where it belongs, the next one is
    os.sched_setaffinity(helper, COMMANDS)
    command("enter")
    command("leave")
    first, second = command.records()
    assert (first["exclusive"], first["reasons"]) == (False, ["affinity_widened"])
    assert "pinned" not in first["cpus"]
    assert second["exclusive"], second["reasons"]


def test_an_affinity_that_is_widened_within_a_region_is_a_reason(sliced):
    command = Told(sliced, "a")
    bystander = command("thread")
    command("enter")
    os.sched_setaffinity(bystander, ALL)
    command("leave")
    record = command.record()
    assert record["reasons"] == ["affinity_widened"] and record["cpus"]["pinned"] == 1


@pytest.mark.parametrize("what", ["killed", "stopped"])
def test_without_a_controller_krex_run_ends_the_pin(sliced, what):
    # GIVEN a command inside a region, with a thread and a child born in it
    command = Told(sliced, "a")
    bystander = command("thread")
    command("enter")
    threads = [command.pid, command("thread"), command("fork")]
    assert on(RESERVED, *threads)
    # WHEN its controller is gone, or keeps its lease no more
    serve = sliced.serve
    serve.send_signal(signal.SIGKILL if what == "killed" else signal.SIGSTOP)
    # THEN they have the command's CPUs
    try:
        wait_for(lambda: on(COMMANDS, *threads))
        assert on(COMMANDS, bystander)
    finally:
        serve.send_signal(signal.SIGCONT)
    command("leave")
    assert command.record()["exclusive"] is False


@pytest.mark.parametrize("point", ["pinned", "before-grant", "leaving", "thawed"])
def test_a_controller_that_dies_between_two_steps_leaves_no_pin(cli, point):
    # GIVEN a controller that is killed on the way into a region, or out of it
    krex = start(cli, KREX_TEST_STOP_AT=f"{point}:kill")
    command = Told(krex, "a")
    # WHEN a command has one
    command("enter")
    command("leave")
    krex.serve.wait(DEADLINE_S)
    # THEN its thread has its CPUs again, and the record does not vouch for it
    wait_for(lambda: on(COMMANDS, command.pid))
    assert command.record()["exclusive"] is False


def test_with_both_gone_the_next_krex_ends_the_pin(sliced):
    # GIVEN a command inside a region whose controller and whose `krex run` are killed
    command = Told(sliced, "a")
    command("enter")
    if not sliced.status()["commands"][0]["cgroup"]:
        pytest.skip("no cgroup to find the command by")
    born = command("fork")
    os.kill(command.run.pid, signal.SIGSTOP)
    sliced.serve.kill()
    sliced.serve.wait()
    command.run.kill()
    assert on(RESERVED, command.pid, born)
    # WHEN somebody looks after what they left, THEN it has its CPUs
    assert sliced("thaw", "--all").returncode == 0
    assert on(COMMANDS, command.pid, born)
    for pid in (born, command.pid):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: ended(pid))
    sliced.start_controller()


@pytest.mark.parametrize(
    ("device", "why"), [("cpu:0", "cores_are_the_device"), ("sim:2", "not_planned")]
)
def test_without_a_slice_nothing_changes_and_the_record_says_why(sliced, device, why):
    command = Told(sliced, "a", device=device)
    assert on(ALL, command.pid, command.run.pid)
    command("enter")
    assert on(ALL, command.pid)
    command("leave")
    record = command.record()
    assert record["exclusive"], record["reasons"]
    assert record["cpus"] == {"no_slice": why} and "pin_s" not in record["handshake"]


def test_a_tree_that_only_has_the_library_preloaded_is_not_moved(sliced):
    library = sliced("lib-path").stdout.strip()
    report = sliced.folder / "p.jsonl"
    program = sliced.popen(
        sliced.python_path, str(PROGRAM), LD_PRELOAD=library, KREX_REPORT=str(report)
    )
    program.stdout.readline()
    program.stdin.write("enter\nleave\n")
    program.stdin.close()
    assert program.wait(DEADLINE_S) == 0
    wait_for(lambda: report.exists() and report.read_text().endswith("\n"))
    # It is on cpu:0, where there is no slice for anybody.
    record = json.loads(report.read_text())
    assert record["cpus"] == {"no_slice": "cores_are_the_device"}


def test_give_back_leaves_alone_who_is_not_on_reserved_cpus_only():
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    pinned, wide = (child.pid for child in sleepers)
    try:
        os.sched_setaffinity(pinned, RESERVED)
        assert give_back(None, pinned, COMMANDS, RESERVED) == 1
        assert give_back(None, wide, COMMANDS, RESERVED) == 0
        assert on(COMMANDS, pinned) and on(ALL, wide)
    finally:
        for child in sleepers:
            child.kill()
            child.wait()
