# SPDX-License-Identifier: Apache-2.0
"""Commands that do anything in any order, at once, on one simulated device: random_program.c.

It is one program, which is compiled by each vendor's names. The device logs every interval, and
`krex sim check` looks for work of somebody else in a region.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from support.command_line import Krex
from support.sim_device import FOLDER, ROOT

from krex.sim.log import read

SOURCE = ROOT / "tests" / "integration" / "random_program.c"
LAUNCHES = 8  # in each region
LIMIT_S = 300.0


# What else the compiler is told for each vendor, and the driver's library.
VENDORS = {"cuda": ((), "libcuda.so.1"), "hip": (("-DHIP",), "libamdhip64.so")}
# The kernels of the HIP program.
CODE = ROOT / "tests" / "unit" / "data" / "sim" / "kernels.gfx90a.hsaco"


def build_random_program(folder: Path, vendor: str) -> Path:
    """random_program.c, linked with the vendor's simulated driver as with a toolkit's."""
    program = folder / "program"
    flags, driver = VENDORS[vendor]
    command: list[str | Path] = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{ROOT / 'shim'}"]
    command += [*flags, "-o", program, SOURCE, f"-L{FOLDER}", f"-l:{driver}", "-lpthread"]
    subprocess.run(command, check=True, timeout=120)
    return program


class Size(NamedTuple):
    """How much of it."""

    commands: int = 16
    threads: int = 2  # in each
    operations: int = 120  # of each thread
    regions: int = 7  # of each thread


class Fleet:
    """The commands of one run after the other, and what was written of them."""

    def __init__(self, krex: Krex, program: Path, size: Size, name: str = "") -> None:
        self.krex, self.program, self.size, self.name = krex, program, size, name
        self.log = krex.folder / f"{name}device.tsv"
        self.reports: list[Path] = []
        self.said: list[dict[str, Any]] = []

    def run(self, *options: str, seed: int = 0, limit_s: float = LIMIT_S) -> None:
        """Start all of them, let them go when all are ready, and wait for all.

        Their seeds are from `seed` on. A program that finds a wrong result fails.
        """
        running = [self._start(options, seed + i) for i in range(self.size.commands)]
        for command in running:
            assert command.stdout.readline() == "ready\n"
        for command in running:
            command.stdin.write("\n")
            command.stdin.flush()
        for command in running:
            out, err = command.communicate(timeout=limit_s)
            assert command.returncode == 0, err
            assert "krex: " not in err
            self.said.append(json.loads(out))

    def _start(self, options: tuple[str, ...], seed: int) -> subprocess.Popen[str]:
        report = self.krex.folder / f"{self.name}{len(self.reports)}.jsonl"
        self.krex.env["KREX_TEST_CODE"] = str(CODE)
        self.reports.append(report)
        _, threads, operations, regions = self.size
        return self.krex.start(
            *("run", "-q", "--sim", "--sim-log", str(self.log), "--report", str(report)),
            *(*options, "--", str(self.program), *map(str, (seed, threads, operations, regions))),
            stdin=subprocess.PIPE,
        )

    def end(self) -> None:
        """End the controller, and the device with it: its log is whole."""
        self.krex.stop_controller()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for r in self.reports for line in r.read_text().splitlines()]

    def claims(self) -> Path:
        """What the programs would claim, by their own clock: alone in each region."""
        path = self.krex.folder / f"{self.name}claims.jsonl"
        with path.open("w") as file:
            for said in self.said:
                for timed in said["timed"]:
                    claim = {"schema": "krex.region", "device": "sim:0", "exclusive": True}
                    claim |= {"region_id": timed["name"], "command": str(said["pid"])}
                    claim |= {"granted_ns": timed["begin_ns"], "released_ns": timed["end_ns"]}
                    file.write(json.dumps(claim | {"holder_pids": [said["pid"]]}) + "\n")
        return path

    def launches(self, *, in_exclusive: bool = False) -> list[tuple[int, int]]:
        """Of all launches in regions: how long each should take, and how long it took, in ns.

        `in_exclusive`: only of those whose record says that they were.
        """
        spins = [i for i in read(self.log).intervals if i.name == "krex_spin"]
        exclusive = {(r["pid"], r["name"]) for r in self.records() if r["exclusive"]}
        found = []
        for said in self.said:
            own = [i for i in spins if i.pid == said["pid"]]
            for timed in said["timed"]:
                if in_exclusive and (said["pid"], timed["name"]) not in exclusive:
                    continue
                begin, end = timed["begin_ns"], timed["end_ns"]
                inside = [i for i in own if begin <= i.arrival_ns <= end]
                assert len(inside) == LAUNCHES
                found += [(timed["ns"] // LAUNCHES, i.end_ns - i.start_ns) for i in inside]
        return found

    def check(self, *reports: Path) -> tuple[int, dict[str, Any]]:
        """What `krex sim check` finds."""
        words = [*self.krex.base, "sim", "check", "--json", str(self.log), *map(str, reports)]
        done = subprocess.run(
            words, env=self.krex.env, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)
