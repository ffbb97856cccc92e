# SPDX-License-Identifier: Apache-2.0
"""What LD_PRELOAD cannot see is seen on the device, and no region beside it is called exclusive.

Each way past KREX's library, a piece of work by that way inside a region, and what the record says.
The same where the device's answer is kept from the controller: the records are wrong, and the log
says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.command_line import Krex
from support.sim_device import FOLDER
from support.told import Told
from support.waiting import wait_for

HERE = Path(__file__).parent
PROGRAM = HERE / "bypass_program.py"
# The controller is not told who is on the device.
BLIND = """
import sys
from krex.controller.residents import Unanswered
from krex.sim.residents import Simulated
Simulated.ask = lambda *_: Unanswered()
from krex.cli import main
main()
"""
# It asks NVML, as about a real device, and that says what is in a file; not while that is missing.
SLOW = """
import os, sys, time, types
from pathlib import Path
library = types.SimpleNamespace(NVMLError=OSError, nvmlInit=lambda: None)
def read(_):
    while not Path("pids").exists():
        time.sleep(0.01)
    pids = map(int, Path("pids").read_text().split())
    return [types.SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]
library.nvmlDeviceGetHandleByPciBusId = lambda address: address
library.nvmlDeviceGetComputeRunningProcesses_v3 = read
sys.modules["pynvml"] = library
from krex.controller import nvml, server
nvml._INIT_PID_NAMESPACE = os.stat("/proc/self/ns/pid").st_ino
server.Server._residents = lambda *_: nvml.Nvml("pci:0000:01:00.0")
from krex.cli import main
main()
"""
CONTROLLERS = {"blind": BLIND, "slow": SLOW}
# What a program needs to find the simulated device, and nothing of KREX.
NEEDED = ("KREX_SIM_SOCKET", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
CLEARED = f'exec env -i {" ".join(f"{name}=${name}" for name in NEEDED)} "$@"'


class Beside:
    """A program that works past KREX when it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdin and process.stdout
        self._stdin, self._stdout = process.stdin, process.stdout
        self.pid = int(self._stdout.readline())

    def work(self) -> None:
        """Until it is done on the device."""
        self._stdin.write("\n")
        self._stdin.flush()
        assert self._stdout.readline() == "0\n"

    def end(self) -> str:
        """End it; its stderr."""
        _, err = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        return err


class Ways:
    """Starts such programs."""

    def __init__(self, krex: Krex, library: Path) -> None:
        self.krex, self._library = krex, library

    def program(self, way: str, *more: str) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self._library), way, *more]

    def _run(self, *words: str) -> Beside:
        run = ("run", "--sim-gpus", "2", "--", *words)
        env = self.krex.env | {"CUDA_VISIBLE_DEVICES": "0"}
        return Beside(self.krex.start(*run, stdin=subprocess.PIPE, env=env))

    def deepbind(self) -> Beside:
        return self._run(*self.program("deepbind"))

    def dlmopen(self) -> Beside:
        return self._run(*self.program("dlmopen"))

    def registered_deepbind(self) -> Beside:
        return self._run(*self.program("deepbind", "registered"))

    def registered_dlmopen(self) -> Beside:
        return self._run(*self.program("dlmopen", "registered"))

    def cleared(self) -> Beside:
        return self._run("sh", "-c", CLEARED, "sh", *self.program("plain"))

    def stranger(self) -> Beside:
        pipe = subprocess.PIPE
        socket = self.krex.folder / "sim.sock"
        values = dict(zip(NEEDED, (str(socket), str(FOLDER), "0"), strict=True))
        process = subprocess.Popen(
            self.program("plain"), env=values, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        self.krex.started.append(process)
        return Beside(process)


class Case(NamedTuple):
    """A way, why a region beside it is not exclusive, and what is said of it on stderr."""

    start: Callable[[Ways], Beside]
    reason: str
    said: str

    def __repr__(self) -> str:
        return self.start.__name__


NOT_LOADED = "unprotected: KREX's library is not in it"
PAST_IT = "past KREX's library"
CASES = [
    Case(Ways.deepbind, "unregistered_process", PAST_IT),
    Case(Ways.dlmopen, "unregistered_process", PAST_IT),
    Case(Ways.registered_deepbind, "bypass", PAST_IT),
    Case(Ways.registered_dlmopen, "bypass", PAST_IT),
    Case(Ways.cleared, "unregistered_process", NOT_LOADED),
    Case(Ways.stranger, "foreign_process", ""),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """works.c, linked as with a toolkit."""
    folder = tmp_path_factory.mktemp("works")
    (folder / "libcuda.so").symlink_to(FOLDER / "libcuda.so.1")
    command: list[str | Path] = ["gcc", "-shared", "-fPIC", "-o", folder / "works.so"]
    subprocess.run([*command, HERE / "works.c", f"-L{folder}", "-lcuda"], check=True, timeout=60)
    return folder / "works.so"


@pytest.fixture
def ways(cli: Krex, library: Path, request: pytest.FixtureRequest) -> Ways:
    if kind := getattr(request, "param", ""):
        cli.base = [sys.executable, "-c", CONTROLLERS[kind]]
    cli.start_controller()
    return Ways(cli, library)


def timed(ways: Ways) -> Told:
    """A command whose regions let siblings run on, on the device of the others."""
    return Told(ways.krex, "init", "context", options=("--protect", "gate"))


def checked(ways: Ways, report: Path) -> tuple[int, dict[str, Any]]:
    """What the device's log says of the records, once it is whole."""
    ways.krex.stop_controller()
    log = ways.krex.folder / "sim-log.tsv"
    done = ways.krex("sim", "check", "--json", str(log), str(report))
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_region_beside_what_works_past_krex_is_not_exclusive(ways: Ways, case: Case) -> None:
    # GIVEN a program that KREX cannot stop
    holder = timed(ways)
    beside = case.start(ways)
    # WHEN it works on the device in somebody's region
    holder.does("enter", "submit", "wait")
    beside.work()
    holder.does("leave")
    # THEN the region's record says so
    record = holder.last_record()
    assert (record["exclusive"], record["reasons"]) == (False, [case.reason])
    # AND names the process, unless it is one that is known
    there = record["foreign_processes"]
    seen = [] if case.reason == "bypass" else [beside.pid]
    assert [p["pid"] for p in there["at_start"]] == seen == [p["pid"] for p in there["at_end"]]
    assert all(("command" in p) == bool(case.said) for p in there["at_end"])
    # AND one line on the stderr of its command says why, and what to do
    lines = [line for line in beside.end().splitlines() if f"process {beside.pid} " in line]
    assert len(lines) == bool(case.said) and all(case.said in line for line in lines)


@pytest.mark.parametrize("ways", ["blind"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_without_the_device_s_word_its_log_shows_the_violation(ways: Ways, case: Case) -> None:
    # GIVEN a controller that is not told who is on the device
    holder = timed(ways)
    beside = case.start(ways)
    # WHEN a program works past KREX in somebody's region
    holder.does("enter", "submit", "wait")
    beside.work()
    holder.does("leave")
    # THEN the record calls that exclusive
    record = holder.last_record()
    assert record["exclusive"] and "foreign_processes" not in record
    beside.end()
    holder.run.communicate(timeout=60)
    # AND it was not
    status, found = checked(ways, holder.report)
    assert status == 1 and {v["pid"] for v in found["violations"]} == {beside.pid}


def test_a_stranger_that_does_nothing_counts_until_it_has_ended(ways: Ways) -> None:
    holder = timed(ways)
    stranger = ways.stranger()
    holder.does("enter", "leave")
    assert holder.last_record()["reasons"] == ["foreign_process"]
    stranger.end()
    # The device takes its time to see to what is left of it.
    holder.does("enter", "leave")
    wait_for(lambda: holder.last_record()["exclusive"] or holder.does("enter", "leave"))


def test_one_that_comes_in_a_region_is_seen_at_its_end(ways: Ways) -> None:
    holder = timed(ways)
    holder.does("enter")
    stranger = ways.stranger()
    holder.does("leave")
    record = holder.last_record()
    assert (record["exclusive"], record["reasons"]) == (False, ["foreign_process"])
    assert record["foreign_processes"]["at_start"] == []
    assert [p["pid"] for p in record["foreign_processes"]["at_end"]] == [stranger.pid]


def test_a_way_past_krex_that_is_not_taken_costs_no_region(ways: Ways) -> None:
    # GIVEN a registered process that works past KREX, but not in regions
    holder = timed(ways)
    beside = ways.registered_deepbind()
    beside.work()
    # WHEN a region has the device THEN nothing of it is there, and the region is exclusive
    holder.does("enter", "submit", "wait", "leave")
    record = holder.last_record()
    assert (record["exclusive"], record["reasons"]) == (True, [])
    assert record["foreign_processes"] == {"at_start": [], "at_end": []}
    beside.end()
    holder.run.communicate(timeout=60)
    assert checked(ways, holder.report)[1]["violations"] == []


# Has a child without KREX's library on the device in its region.
PARENT = """
import ctypes, os, subprocess, sys
import krex
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
with krex.region():
    pipe = subprocess.PIPE
    env = {name: os.environ[name] for name in sys.argv[1].split()}
    child = subprocess.Popen(sys.argv[2:], env=env, stdin=pipe, stdout=pipe, text=True)
    print(child.stdout.readline(), end="", flush=True)
sys.stdin.read()
child.communicate()
"""


def test_a_child_of_the_holder_without_the_library_counts_too(ways: Ways) -> None:
    # GIVEN a process that starts one without KREX's library in its region
    report = ways.krex.folder / "r.jsonl"
    run = ["run", "--sim", "--report", str(report), "--", sys.executable, "-c", PARENT]
    words = [*run, " ".join(NEEDED), *ways.program("plain")]
    parent = Beside(ways.krex.start(*words, stdin=subprocess.PIPE))
    (record,) = wait_for(lambda: report.exists() and ways.krex.records(report.name))
    # THEN the region is not exclusive: nobody knows when that one submits
    assert (record["exclusive"], record["reasons"]) == (False, ["unregistered_process"])
    (child,) = record["foreign_processes"]["at_end"]
    assert (child["pid"], child["command"]) == (parent.pid, record["command"])
    assert NOT_LOADED in parent.end()


slow = pytest.mark.parametrize("ways", ["slow"], indirect=True)


def say(ways: Ways, *pids: int) -> None:
    """What NVML answers from now on."""
    new = ways.krex.folder / "new"
    new.write_text(" ".join(map(str, pids)))
    new.rename(ways.krex.folder / "pids")


@slow
def test_what_nvml_says_of_others_counts_as_well(ways: Ways) -> None:
    holder = timed(ways)
    other = ways.krex.controller_pid()
    # WHEN NVML knows of a process that is none of KREX's, and of the holder
    (own,) = (p["pid"] for d in ways.krex.status()["devices"] for p in d["processes"])
    say(ways, other, own)
    holder.does("enter", "leave")
    # THEN the region is not exclusive, and only the other one is named
    record = holder.last_record()
    assert (record["exclusive"], record["reasons"]) == (False, ["foreign_process"])
    assert [p["pid"] for p in record["foreign_processes"]["at_end"]] == [other]
    # WHEN it is gone THEN regions are exclusive, as soon as NVML has been asked again
    say(ways, own)
    holder.does("enter", "leave", "enter", "leave")
    assert holder.last_record()["exclusive"]


@slow
def test_no_region_waits_for_nvml(ways: Ways) -> None:
    # GIVEN an NVML that does not answer
    holder = timed(ways)
    # WHEN a region has the device THEN it does not wait for that, and says that nobody knows
    holder.does("enter", "submit", "wait", "leave")
    record = holder.last_record()
    assert record["exclusive"] and "foreign_processes" not in record
    say(ways)


@slow
def test_a_driver_loaded_twice_is_a_reason_where_the_device_does_not_count(ways: Ways) -> None:
    holder = timed(ways)
    say(ways)
    beside = ways.registered_dlmopen()
    holder.does("enter", "leave")
    assert holder.last_record()["reasons"] == ["bypass"]
    assert PAST_IT in beside.end()
