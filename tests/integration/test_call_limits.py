# SPDX-License-Identifier: Apache-2.0
"""Harnesses with time limits of their own, which end, leave or kill what is being measured."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.interpreters import VERSIONS, interpreter
from support.waiting import DEADLINE_S, ended, wait_for

HERE = Path(__file__).parent
PROGRAM = HERE / "call_limits_program.py"
HANGS, RETURNS, NOTHING = "call_limits.hangs", "call_limits.returns", "call_limits.nothing"
MEASURE = "import call_limits; call_limits.returns()"
FOREVER = ("--max-hold", "3600")  # nobody gets the device by its holder's limit
BRIEFLY = ("--max-hold", "0.5")  # whoever is left inside has it until then


class Limits:
    """A harness that gives up, and commands beside it."""

    def __init__(self, krex: Krex) -> None:
        self.krex = krex
        krex.env |= {"PYTHONPATH": str(HERE), "KREX_REGION": f"call:{HANGS},{RETURNS},{NOTHING}"}
        self.left: list[int] = []

    def start(
        self, report: str, *words: str, options: tuple[str, ...], version: str = "3.8"
    ) -> subprocess.Popen[str]:
        command = ("run", "-q", "--sim", "--report", report, *options, "--")
        return self.krex.start(*command, *interpreter(version), *words, stdin=-1)

    def harness(self, way: str, *options: str, version: str = "3.8") -> subprocess.Popen[str]:
        """Start it; it has given up."""
        process = self.start("r", str(PROGRAM), way, options=options, version=version)
        self.left += [self.given_up(process)]
        return process

    def given_up(self, process: subprocess.Popen[str]) -> int:
        """The pid of who is left inside, or 0."""
        line = process.stdout.readline()
        assert line.startswith("given up "), process.stderr.read()
        return int(line.split()[-1])

    def measures_beside(self) -> bool:
        """Whether another command gets the device for itself."""
        options = ("--require", "--max-wait", str(DEADLINE_S / 2))
        process = self.start("beside", "-c", MEASURE, options=options)
        process.communicate(timeout=DEADLINE_S)
        return process.returncode == 0

    def regions(self) -> list[tuple[str, bool, list[str]]]:
        """Name, exclusivity and reasons of the harness's."""
        records = [r for r in self.krex.records("r") if r["schema"] == "krex.region"]
        return [(r["name"], r["exclusive"], r["reasons"]) for r in records]

    def device(self) -> dict[str, Any]:
        [device] = self.krex.status()["devices"]
        return {key: device[key] for key in ("gate", "hold", "queue")}


FREE = {"gate": "open", "hold": None, "queue": []}


@pytest.fixture
def limits(cli: Krex) -> Iterator[Limits]:
    scene = Limits(cli)
    yield scene
    for pid in filter(None, scene.left):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not cli.status()["commands"])


def tell(process: subprocess.Popen[str], word: str) -> None:
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def measure_and_end(harness: subprocess.Popen[str]) -> int:
    """Have it measure something else, and end; its status."""
    tell(harness, "again")
    assert harness.stdout.readline() == "measured\n"
    tell(harness, "end")
    return harness.wait(DEADLINE_S)


def test_a_signal_that_ends_what_is_timed_ends_the_region(limits: Limits) -> None:
    # GIVEN a harness whose SIGALRM handler raises, in the middle of the timed function
    harness = limits.harness("alarm", *FOREVER)
    # THEN the device is free, and others get it, while the harness lives on
    assert limits.device() == FREE
    assert limits.measures_beside()
    # AND what it measures next has a region of its own
    assert measure_and_end(harness) == 3
    assert limits.regions() == [(HANGS, True, []), (RETURNS, True, [])]


def test_a_signal_while_the_function_waits_for_the_device_takes_effect_then(limits: Limits) -> None:
    # GIVEN a harness whose limit passes while a child of it has the device, until that has happened
    harness = limits.harness("wait", *FOREVER)
    # THEN the handler raises once the device is there, the harness goes on, and holds nothing
    assert limits.device() == FREE
    assert measure_and_end(harness) == 3
    *before, last = limits.regions()
    assert last == (RETURNS, True, []) and all(exclusive for _, exclusive, _ in before)


@pytest.mark.parametrize("version", VERSIONS[VERSIONS.index("3.10") :])
def test_a_signal_at_any_moment_leaves_nothing_marked(limits: Limits, version: str) -> None:
    # GIVEN a harness whose handler raises thousands of times, wherever it is with a marked function
    harness = limits.harness("storm", *FOREVER, version=version)
    # THEN what it times after that is in no region
    assert limits.device() == FREE
    assert measure_and_end(harness) == 3
    assert limits.regions() == [(RETURNS, True, [])]


def test_a_child_that_is_killed_by_its_supervisor_holds_nothing(limits: Limits) -> None:
    # GIVEN a supervisor that kills the child that it measures, and lives on
    harness = limits.harness("kill", *FOREVER)
    # THEN others get the device, and so does it for what it measures next
    assert limits.measures_beside()
    assert measure_and_end(harness) == 3
    # AND the record of the child says what happened
    assert limits.regions() == [(HANGS, False, ["process_died"]), (RETURNS, True, [])]


def test_a_thread_of_a_pool_that_nobody_waits_for(limits: Limits) -> None:
    # GIVEN a harness that leaves a thread inside, and does not end
    harness = limits.harness("thread", *BRIEFLY)
    # THEN others get the device all the same
    assert limits.measures_beside()
    # AND `krex run` ends when the harness does, with a record that vouches for nothing
    tell(harness, "end")
    assert harness.wait(DEADLINE_S) == 3
    [(name, exclusive, reasons)] = limits.regions()
    assert (name, exclusive) == (HANGS, False) and reasons


def test_a_worker_of_a_pool_that_outlives_its_harness(limits: Limits) -> None:
    # GIVEN a harness that leaves a process inside
    harness = limits.harness("process", *BRIEFLY)
    assert limits.measures_beside()
    # WHEN it measures something else, and ends without that process
    assert measure_and_end(harness) == 3
    # THEN only what was left may not be exclusive
    [left] = [region for region in limits.regions() if region != (RETURNS, True, [])]
    assert left[:2] == (HANGS, False) and left[2]
    # AND that process, which lives on, holds nothing
    [worker] = limits.left
    assert not ended(worker)
    assert limits.device() == FREE and limits.measures_beside()


def test_a_worker_that_is_inside_when_its_harness_ends(limits: Limits) -> None:
    # GIVEN a harness that ends at once, while a worker of it has the device for as long as it likes
    harness = limits.harness("process", *FOREVER, "--require")
    tell(harness, "end")
    # THEN `krex run` ends, and vouches for nothing
    assert harness.wait(DEADLINE_S) == 125
    assert limits.regions() == [(HANGS, False, ["open_at_end"])]
    # AND others get the device once the worker is gone
    os.kill(limits.left.pop(), signal.SIGKILL)
    assert limits.measures_beside()
