# SPDX-License-Identifier: Apache-2.0
"""Slots, with real commands: so many run at once, the others wait visibly, and all finish."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

REGIONS = Path(__file__).with_name("region_program.py")
SLOTS, COMMANDS = 16, 64

# Says that it is in, how many others are, and, once it was given a byte, that it leaves. What is
# appended by one write does not mix.
VISITOR = 'mkdir "in/$1"; set -- "$1" in/*; echo "in $1 $(($# - 1))" >>log; '
VISITOR += 'read -r _; rmdir "in/$1"; echo "out $1" >>log'


# Makes a context, says so, and then runs a command.
HARNESS = """
import subprocess, sys
from device_work import Work
Work().burst(2)
print("ready", flush=True)
sys.stdin.readline()
subprocess.run(sys.argv[1:], check=True)
"""


class Visitors:
    """Commands that stay inside until they are let go, one byte of `gate` each."""

    def __init__(self, krex: Krex) -> None:
        self.krex = krex
        (krex.folder / "in").mkdir()
        self.stdin, self.gate = os.pipe()
        self.started: dict[str, subprocess.Popen[str]] = {}

    def start(self, *names: str, options: tuple[str, ...] = ()) -> None:
        for name in names:
            run = ("run", "-q", *options, "--", "sh", "-c", VISITOR, "sh", name)
            self.started[name] = self.krex.start(*run, stdin=self.stdin)

    def let_go(self, count: int) -> None:
        os.write(self.gate, b"\n" * count)

    def log(self) -> list[list[str]]:
        path = self.krex.folder / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def device(self) -> dict[str, Any]:
        """The device in `krex status`, if it has any command."""
        return (self.krex.status()["devices"] or [{"slots_used": 0, "admission": []}])[0]

    def queue(self) -> list[str]:
        return [applicant["argv"][-1] for applicant in self.device()["admission"]]


@pytest.fixture
def visitors(cli: Krex) -> Iterator[Visitors]:
    crowd = Visitors(cli)
    yield crowd
    os.close(crowd.gate)  # who is still in reads the end, and leaves
    os.close(crowd.stdin)


def index(log: list[list[str]], what: str, name: str) -> int:
    return [line[:2] for line in log].index([what, name])


@pytest.mark.slow
def test_of_64_commands_16_run_and_48_wait_in_a_queue_and_all_finish(visitors: Visitors) -> None:
    # GIVEN 64 commands, one of which, in the middle of the queue, is to be alone, and no controller
    names = [f"v{number}" for number in range(COMMANDS)]
    early, lone, late = names[:40], names[40], names[41:]
    visitors.start(*early)
    wait_for(lambda: len(visitors.queue()) == 40 - SLOTS)
    visitors.start(lone, options=("--exclusive", "command"))
    wait_for(lambda: visitors.queue()[-1:] == [lone])
    visitors.start(*late)
    wait_for(lambda: len(visitors.queue()) == COMMANDS - SLOTS)
    # THEN 16 run, and the others stand in a queue; of how long they wait nothing is known yet
    wait_for(lambda: len(visitors.log()) == SLOTS)
    device = visitors.device()
    assert (device["slots_used"], device["slots"]) == (SLOTS, SLOTS)
    assert len(visitors.krex.status()["commands"]) == SLOTS
    assert [a["place"] for a in device["admission"]] == list(range(1, COMMANDS - SLOTS + 1))
    assert {a["expected_wait_s"] for a in device["admission"]} == {None}
    # WHEN half of them end, THEN as many come in, and by how long those took, one can tell
    visitors.let_go(SLOTS // 2)
    wait_for(lambda: len(visitors.queue()) == COMMANDS - SLOTS - SLOTS // 2)
    wait_for(lambda: visitors.device()["admission"][0]["expected_wait_s"] is not None)
    # AND one that is killed frees its place
    queue = visitors.queue()
    killed = queue[2]
    visitors.started.pop(killed).kill()
    wait_for(lambda: visitors.queue() == queue[:2] + queue[3:])
    # AND all others finish
    visitors.let_go(COMMANDS)
    assert {c.wait(DEADLINE_S * 2) for c in visitors.started.values()} == {0}
    log = visitors.log()
    assert sorted(line[1] for line in log if line[0] == "out") == sorted({*names} - {killed})
    # By their own count there were never more, but sometimes as many.
    assert max(int(line[2]) for line in log if line[0] == "in") == SLOTS
    # Who was before the lone one had left, and who was behind it came after it.
    begin, end = index(log, "in", lone), index(log, "out", lone)
    assert end == begin + 1 and log[begin][2] == "1"
    place = queue.index(lone)
    assert all(index(log, "out", name) < begin for name in early if name != killed)
    assert all(index(log, "in", name) > end for name in queue[place + 1 :])
    assert visitors.device()["slots_used"] == 0


def test_a_controller_that_is_started_has_so_many_slots_as_its_environment_says(
    visitors: Visitors,
) -> None:
    visitors.krex.env["KREX_SLOTS"] = "2"
    visitors.start("a", "b")
    wait_for(lambda: len(visitors.log()) == 2)
    third = visitors.krex.start("run", "--", "true")
    assert third.stderr is not None
    line = third.stderr.readline()
    assert line == "krex: waiting, place 1 of 1: all 2 slots of cpu:0 are taken\n"
    assert "2 of 2 slots taken" in visitors.krex("status").stdout
    visitors.let_go(2)
    assert third.wait(DEADLINE_S) == 0


def test_a_command_keeps_its_slot_until_its_last_process_has_ended(visitors: Visitors) -> None:
    visitors.krex.env["KREX_SLOTS"] = "1"
    # GIVEN a command whose `krex run` was killed
    visitors.start("orphan")
    wait_for(lambda: len(visitors.log()) == 1)
    if visitors.krex.status()["commands"][0]["cgroup"] is None:
        pytest.skip("without a cgroup only `krex run` can tell whether its command has ended")
    visitors.started["orphan"].kill()
    visitors.start("next")
    wait_for(lambda: visitors.queue() == ["next"])
    assert len(visitors.log()) == 1
    # WHEN it ends, THEN the next one is let in
    visitors.let_go(2)
    assert visitors.started["next"].wait(DEADLINE_S) == 0
    log = visitors.log()
    assert index(log, "out", "orphan") < index(log, "in", "next")


def test_a_nested_run_takes_no_slot(cli: Krex) -> None:
    cli.env["KREX_SLOTS"] = "1"
    inner = [*cli.base, "run", "--", "sh", "-c", "echo $KREX_COMMAND"]
    # By its environment, and where that was cleared.
    socket = f"KREX_SOCKET={cli.env['KREX_SOCKET']}"
    parent = f"PYTHONPATH={cli.env.get('PYTHONPATH', '')}"
    script = f'echo $KREX_COMMAND; "$@"; exec env -i {socket} {parent} "$@"'
    done = cli("run", "--", "sh", "-c", script, "sh", *inner)
    assert done.returncode == 0
    assert len(set(done.stdout.split())) == 1 and len(done.stdout.split()) == 3


def test_a_preloaded_tree_takes_a_slot_and_what_it_starts_is_part_of_it(
    cli: Krex, library: Path
) -> None:
    pytest.importorskip("pyopencl")
    cli.env["KREX_SLOTS"] = "1"
    cli.start_controller()
    # GIVEN a harness with a context, which has the only slot, and a command that waits for it
    search = f"{REGIONS.parent}:{cli.env.get('PYTHONPATH', '')}"
    nested = [*cli.base, "run", "--", "sh", "-c", "echo $KREX_COMMAND"]
    harness = cli.popen(
        cli.python_path, "-c", HARNESS, *nested, LD_PRELOAD=str(library), PYTHONPATH=search
    )
    assert harness.stdout is not None and harness.stdout.readline() == "ready\n"
    assert cli.status()["devices"][0]["slots_used"] == 1
    other = cli.start("run", "--", "true")
    [applicant] = wait_for(lambda: cli.status()["devices"][0]["admission"])
    assert applicant["expected_wait_s"] is None
    # WHEN the harness runs a command, THEN that does not wait for the slot
    out, _ = harness.communicate("\n", timeout=DEADLINE_S)
    assert out == f"p-{harness.pid}\n"
    # AND at its end the slot is free
    assert other.wait(DEADLINE_S) == 0


def span(program: subprocess.Popen[str]) -> tuple[int, int]:
    """From the start of its first kernel to the end of its last."""
    out, _ = program.communicate(timeout=2 * DEADLINE_S)
    assert program.returncode == 0
    kernels = json.loads(out.splitlines()[-1])["kernels"]
    return kernels[0][0], kernels[-1][1]


def known(krex: Krex) -> list[str]:
    """The last words of all commands that run or wait."""
    status = krex.status()
    waiting = [a for device in status["devices"] for a in device["admission"]]
    return [c["argv"][-1] for c in status["commands"] + waiting if c["argv"]]


@pytest.mark.slow
def test_a_lone_command_among_commands_with_regions(cli: Krex) -> None:
    pytest.importorskip("pyopencl")
    cli.env["KREX_SLOTS"] = "2"
    programs = []
    for place, kind in enumerate(["region", "region", "command", "region", "region"]):
        options = ("--report", str(cli.folder / f"{place}.jsonl"), "--exclusive", kind)
        programs.append(cli.python(REGIONS, "2", "", f"number {place}", options=options))
        # The next one is to come after it.
        wait_for(lambda name=f"number {place}": name in known(cli))
    spans = [span(program) for program in programs]
    lone = spans[2]
    assert all(end < lone[0] for _, end in spans[:2])
    assert all(begin > lone[1] for begin, _ in spans[3:])
    records = [record for place in range(5) for record in cli.records(f"{place}.jsonl")]
    assert [r["marker"] for r in records].count("command") == 1 and len(records) == 11
    # A machine that is busy with other things may miss a deadline of the handshake, and say so.
    missed = [r["reasons"] for r in records if not r["exclusive"]]
    assert len(missed) <= 4
    assert {reason for reasons in missed for reason in reasons} <= {
        "heavy_call_running", "submission_in_flight", "sibling_not_drained", "freeze_incomplete",
    }  # fmt: skip
