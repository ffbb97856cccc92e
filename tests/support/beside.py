# SPDX-License-Identifier: Apache-2.0
"""A region on simulated devices, beside a command in a state that a test chooses.

Both ends are told what to do line by line, and the controller's steps can be waited for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.command_line import Krex
from support.sim_device import Device
from support.stop_points import StopPoints
from support.told import PROGRAM as TOLD
from support.waiting import DEADLINE_S, wait_for

from krex.sim.log import read as read_log
from krex.sim.model import flatten, read

SIBLING = TOLD.with_name("hard_program.py")
MODEL = """
[contexts]
context_ns = 1_000_000  # quicker than any real device
load_ns = 1000
teardown_ns = 700_000_000
[[rules]]
pattern = "*"
launch_ns = 2000
"""
FAULTS = (("fails", "illegal_address"), ("hangs", "hang"), ("vanishes", "lost"))
FAULT_NS = 300_000_000


def model() -> str:
    """The rules of what goes wrong come first: the first that fits holds."""
    rules = "".join(
        f'[[rules]]\npattern = "{name}"\nfixed_ns = {FAULT_NS}\nfault = "{fault}"\n'
        for name, fault in FAULTS
    )
    before, mark, last = MODEL.partition("[[rules]]")
    return before + rules + mark + last


def lines_of(report: Path) -> list[dict[str, Any]]:
    """The records that are there by now."""
    lines = report.read_text().splitlines() if report.exists() else []
    return [json.loads(line) for line in lines]


class Talk:
    """A program that answers in lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, line: str = "") -> None:
        """Without waiting for what comes of it."""
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def await_ready(self) -> None:
        assert self.hear() == "ready"

    def finds(self) -> Any:
        """What the sibling's program prints in the end; it ended well."""
        found = json.loads(self.hear())
        assert self.process.wait(DEADLINE_S) == 0
        return found


class Holder(Talk):
    """Marks regions when it is told to."""

    def __init__(self, process: subprocess.Popen[str], report: Path) -> None:
        super().__init__(process)
        self._report, self._entered = report, 0

    def does(self, *words: str) -> None:
        """Each in turn, with success."""
        for word in words:
            self.tell(word)
            self.answers()

    def answers(self) -> None:
        assert self.hear().split()[0] == "0"

    def begin(self) -> None:
        """Ask for a region."""
        self._entered += 1
        self.tell("enter")

    def end(self) -> dict[str, Any]:
        """The record of the region, which began, in which it submits something."""
        self.answers()
        self.does("submit", "leave")
        return self.record()

    def record(self) -> dict[str, Any]:
        """The record of the region that it was in last."""
        records = wait_for(lambda: len(r := lines_of(self._report)) == self._entered and r)
        return records[-1]


class Beside:
    """A controller that stops where it is told to, and two simulated devices."""

    def __init__(self, krex: Krex) -> None:
        self.krex, self.log = krex, krex.folder / "device.tsv"
        self._model = krex.folder / "model.toml"
        self._model.write_text(model())
        self.points = StopPoints(krex.folder / "points.sock")
        krex.env["KREX_TEST_STOP_AT"] = self.points.action
        krex.start_controller()
        del krex.env["KREX_TEST_STOP_AT"]
        self._reports: list[Path] = []

    def _start(self, program: Path, *words: str, device: int) -> subprocess.Popen[str]:
        report = self.krex.folder / f"{len(self._reports)}.jsonl"
        self._reports.append(report)
        options = ("--sim-gpus", "2", "--sim-log", str(self.log), "--sim-model", str(self._model))
        options += ("--report", str(report))
        visible = str(device)
        return self.krex.python(program, *words, options=options, CUDA_VISIBLE_DEVICES=visible)

    def sibling(self, scenario: str, device: int = 0) -> Talk:
        """A command that is in that state."""
        sibling = Talk(self._start(SIBLING, scenario, device=device))
        sibling.await_ready()
        return sibling

    def holder(self, device: int = 0) -> Holder:
        """A command that has a context, and has submitted something."""
        holder = Holder(self._start(TOLD, device=device), self._reports[-1])
        holder.does("init", "context", "submit")
        return holder

    def records(self, of: int) -> list[dict[str, Any]]:
        """Of the command that was started as that one."""
        return lines_of(self._reports[of])

    def kill_program_of(self, sibling: Talk) -> None:
        """The program, not its `krex run`."""
        children = Path(f"/proc/{sibling.process.pid}/task/{sibling.process.pid}/children")
        [pid] = map(int, children.read_text().split())
        os.kill(pid, signal.SIGKILL)

    def ends(self) -> list[str]:
        """How those commands on the device ended that did not end well."""
        return [i.status for i in read_log(self.log).intervals if i.status != "ok"]

    @contextlib.contextmanager
    def at(self, point: str, holder: Holder) -> Iterator[None]:
        """The holder has asked for a region, and the controller stands at that step meanwhile."""
        self.points.arm(point)
        holder.begin()
        reached = self.points.wait()
        yield
        reached.go_on()

    def until(self, point: str, holder: Holder) -> None:
        """Let the holder ask for a region, until the controller gets to that step."""
        with self.at(point, holder):
            pass

    def check(self) -> dict[str, Any]:
        """By the word of the device, nobody was beside an exclusive region. What else it says."""
        for child in self.krex.started:
            if child.stdin:
                child.stdin.close()
            child.wait(DEADLINE_S)
        self.krex.stop_controller()  # and the device with it: its log is whole
        reports = [str(report) for report in self._reports if report.exists()]
        done = self.krex("sim", "check", "--json", str(self.log), *reports)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def close(self) -> None:
        self.points.close()


def alone(scenario: str, folder: Path, environment: dict[str, str]) -> Any:
    """What the sibling's program finds without KREX."""
    flat = folder / "flat"
    source = folder / "model.toml"
    flat.write_text(flatten(read(str(source))))
    device = Device(folder, Path(), "--devices", "2", "--model", str(flat))
    try:
        words = [sys.executable, str(SIBLING), scenario]
        env = environment | {"KREX_SIM_SOCKET": str(device.socket)}
        out = subprocess.run(
            words, env=env, input="\n" * 8, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S
        ).stdout
    finally:
        device.close()
    return json.loads(out.splitlines()[-1])
