# SPDX-License-Identifier: Apache-2.0
"""A holder, two siblings and a controller, each of which a test may kill or stop at any point."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from support.command_line import Krex
from support.stop_points import StopPoints
from support.waiting import DEADLINE_S, ended, state_of, wait_for

from krex.cli.status import ask
from krex.protect.pin import mask_of, threads

PROGRAM = Path(__file__).parents[1] / "stress" / "deaths_program.py"
NS = 10**9
# How often each point is gone through: once in the default run, by `make stress` with all variants.
ROUNDS = int(os.environ.get("KREX_TEST_ROUNDS", "1"))
# Deadlines that a machine without a free core may miss, whoever died.
BUSY = {"heavy_call_running", "submission_in_flight", "freeze_incomplete"}
STOP_S = 3.0 if ROUNDS > 1 else 1.6  # the lease is 1 s
# What is promised: so soon after a death, or after the end of a stop, nothing is frozen, no gate is
# shut, and the siblings go on. Everything else that is waited for has the tests' own deadline.
LIMIT_S = 1.0
LAST_LOOK_S = 0.05  # for who looks late: what is right by then was right in time, as far as we know
CPUS = sorted(os.sched_getaffinity(0))
# A device that has cores of its own, the last one reserved; commands run on the others.
SLICED, RESERVED = "sim:1", {CPUS[-1]}


def now_ns() -> int:
    """The clock of the kernels' timestamps."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Party:
    """A command: its `krex run`, and the one process below it."""

    def __init__(self, krex: Krex, role: str, name: str, device: str = "", **env: str) -> None:
        self.name, self.report_path = name, krex.folder / f"{name}.jsonl"
        options = ("--report", str(self.report_path), "-q")
        if device:
            options += ("--device", device)
        self.run = krex.python(PROGRAM, role, device, options=options, **env)
        self.output: dict[str, Any] | None = None

    def await_ready(self) -> None:
        self.pid = int(self.read())

    def read(self) -> str:
        """A line; also when it is not `krex run` that is left to write it."""
        line = self.run.stdout.readline()
        assert line, f"{self.name} ended"
        return line

    def has_said(self) -> bool:
        """Whether there is something to read."""
        return bool(select.select([self.run.stdout], [], [], 0)[0])

    def finish(self) -> dict[str, Any]:
        """End it; its intervals, as far as they are known. Once."""
        with contextlib.suppress(OSError, ValueError):
            self.run.stdin.close()
        said = list(map(json.loads, self.run.stdout.read().splitlines()))
        self.run.wait(DEADLINE_S)
        wait_for(lambda: ended(self.pid))
        if said and "kernels" in said[-1]:
            return said[-1]
        # Killed: of its regions we know those it told us of and nobody has read yet.
        known = {r["name"]: r["region"] for r in said}
        return {"kernels": [], "names": list(known), "regions": list(known.values())}

    def records(self) -> list[dict[str, Any]]:
        if not self.report_path.exists():
            return []
        return [json.loads(line) for line in self.report_path.read_text().splitlines()]


class Scene:
    """One controller, a holder that waits to be told to enter a region, two busy siblings."""

    def __init__(self, krex: Krex) -> None:
        self.krex = krex
        self.points = StopPoints(krex.folder / "points.sock")
        self.socket = Path(krex.env["KREX_SOCKET"])
        self._after = itertools.count()

    def start(self, whose: str = "controller", *, sliced: bool = False) -> None:
        """Start all; the points are those of one of them. `sliced`: on a device with cores."""
        self._reserved = RESERVED if sliced else set()
        before = self.krex.env
        plan = {"KREX_TEST_PLAN": f"{SLICED}={','.join(map(str, CPUS))}/{CPUS[-1]}"}
        self.krex.env = before | self._points_of(whose == "controller") | (plan if sliced else {})
        try:
            self.krex.start_controller()
        finally:
            self.krex.env = before
        self.controller = self.krex.serve.pid
        device = SLICED if sliced else ""
        self.holder, self.victim, self.witness = (
            Party(self.krex, role, name, device, **self._points_of(whose == name))
            for role, name in (("holder", "holder"), ("sibling", "victim"), ("sibling", "witness"))
        )
        self.parties = (self.holder, self.victim, self.witness)
        for party in self.parties:
            party.await_ready()
        commands = self.status()["commands"]
        self.groups = {c["root_pid"]: Path(c["cgroup"]) for c in commands if c["cgroup"]}
        assert set(self.groups) == {p.pid for p in self.parties}

    def _points_of(self, wanted: bool) -> dict[str, str]:
        return {"KREX_TEST_STOP_AT": self.points.action} if wanted else {}

    def pids(self, who: str) -> list[int]:
        """Whom a name means."""
        found = {
            "holder": self.holder.pid,
            "sibling": self.victim.pid,
            "holder-run": self.holder.run.pid,
            "sibling-run": self.victim.run.pid,
            "controller": self.controller,
        }
        return [found[name] for name in who.split("+")]

    def status(self) -> dict[str, Any]:
        return ask(str(self.socket))

    def enter(self, name: str, seconds: float = 0) -> None:
        """Tell the holder to go through a region, which lasts at least so long."""
        self.holder.run.stdin.write(f"{name} {seconds}\n")
        self.holder.run.stdin.flush()

    def await_region(self) -> None:
        """Until the holder says that it has left it."""
        json.loads(self.holder.read())

    def freezes(self) -> dict[int, str]:
        """What the groups' freeze files say, and whether the groups stand still."""
        found = {}
        for pid, group in self.groups.items():
            with contextlib.suppress(OSError):
                asked = (group / "cgroup.freeze").read_text().strip()
                found[pid] = f"{asked} {'frozen 1' in (group / 'cgroup.events').read_text()}"
        return found

    def await_thawed(self, since_ns: int) -> None:
        """No group stands still, or is asked to."""
        wait_until(lambda: set(self.freezes().values()) <= {"0 False"}, since_ns)

    def await_unpinned(self, since_ns: int) -> None:
        """No thread of the commands is confined to reserved CPUs, where some are."""

        def is_unpinned() -> bool:
            tids = [tid for party in self.parties for tid in threads(party.pid)]
            return not any(mask_of(tid) == self._reserved for tid in tids)

        wait_until(is_unpinned, since_ns)

    def await_open(self, since_ns: int) -> None:
        """The controller has nothing closed, held or queued."""

        def is_open() -> bool:
            status = self.status()
            [device] = status["devices"]
            held = (device["gate"], device["hold"], device["queue"])
            return held == ("open", None, []) and not any(c["frozen"] for c in status["commands"])

        wait_until(is_open, since_ns)

    def await_records(self, count: int) -> list[dict[str, Any]]:
        """The holder's first so many records."""
        return wait_for(lambda: (r := self.holder.records()) and len(r) >= count and r)

    def record_of(self, name: str) -> dict[str, Any]:
        return wait_for(lambda: next((r for r in self.holder.records() if r["name"] == name), None))

    def check_exclusive_again(self) -> None:
        """A region has the device to itself; on a machine without a free core not the first one."""
        reasons = []
        for _ in range(5):
            name = f"after-{next(self._after)}"
            self.enter(name)
            self.await_region()
            record = self.record_of(name)
            if record["exclusive"]:
                return
            reasons.append(record["reasons"])
        raise AssertionError(f"never exclusive again: {reasons}")

    def finish(self) -> list[dict[str, Any]]:
        """End all; what those wrote that were not killed."""
        return [party.finish() for party in self.parties]

    def check_kernels(self, over_ns: int) -> None:
        """End all; siblings went on within the limit, and none ran inside what is exclusive."""
        holder, *siblings = self.finish()
        for output in siblings:
            if output["kernels"]:
                after = [start for start, _ in output["kernels"] if start > over_ns]
                assert after and min(after) < over_ns + LIMIT_S * NS
        exclusive = {r["name"] for r in self.holder.records() if r["exclusive"]}
        kernels = [kernel for output in siblings for kernel in output["kernels"]]
        regions = dict(zip(holder["names"], holder["regions"], strict=True))
        checked = exclusive & regions.keys()
        assert [name for name in checked if overlaps(regions[name], kernels)] == []

    def await_nothing_left(self) -> None:
        """No process, group, shared memory, journal entry or socket outlives the last command."""
        name = f"krex-{self.controller}-*"
        assert list(Path("/dev/shm").glob(name)) == []
        wait_for(lambda: not any(group.exists() for group in self.groups.values()))
        journal = self.socket.parent / "journal"
        wait_for(lambda: not list(journal.glob("group-*")))
        if self.krex.serve.poll() is None:
            self.krex.stop_controller()
        assert not self.socket.exists()

    def close(self) -> None:
        """Whatever happened, nothing stays behind."""
        self.points.close()
        for pid in [p.pid for p in getattr(self, "parties", ()) if hasattr(p, "pid")]:
            if not ended(pid) and "deaths_program" in command_line(pid):
                os.kill(pid, signal.SIGKILL)
        for child in [*self.krex.started, self.krex.serve]:
            if child and child.poll() is None and state_of(child.pid) == "T":
                child.send_signal(signal.SIGCONT)


def wait_until(condition: Callable[[], Any], since_ns: int) -> None:
    """Wait for what has to be so LIMIT_S after `since_ns`."""
    left_s = LIMIT_S - (now_ns() - since_ns) / NS
    wait_for(condition, max(left_s, LAST_LOOK_S))


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def kill(pids: Iterable[int]) -> None:
    """SIGKILL, and wait until they are gone: their descriptors are closed by then."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: ended(pid))


def overlaps(region: list[int], kernels: list[list[int]]) -> int:
    return sum(start < region[1] and end > region[0] for start, end in kernels)
