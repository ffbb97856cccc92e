# SPDX-License-Identifier: Apache-2.0
"""G1 and G2, by the word of the device: what it did and when, beside what the records claim.

Sixteen programs that do anything in any order. The simulated device logs every interval, and
`krex sim check` looks for work of somebody else in a region.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex

from krex.sim.log import read

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "krex" / "lib" / "sim"
COMMANDS, REGIONS = 16, 14  # of each command
OPERATIONS = 120
LAUNCHES = 8  # in each region
LIMIT_S = 300.0


class Fleet:
    """Commands that run at once on one simulated device, and what was written of them."""

    def __init__(self, krex: Krex, program: Path, threads: int = 2) -> None:
        self.krex, self.program, self.threads = krex, program, threads
        self.log = krex.folder / "device.tsv"
        self.reports: list[Path] = []
        self.said: list[dict[str, Any]] = []

    def run(self, *options: str, commands: int = COMMANDS) -> None:
        """Start all of them, and when all are ready let them run to their end."""
        self.reports = [self.krex.folder / f"{seed}.jsonl" for seed in range(commands)]
        running = [
            self.krex.start(
                *("run", "-q", "--sim", "--sim-log", str(self.log), "--report", str(report)),
                *(*options, "--", str(self.program), str(seed), str(self.threads)),
                *(str(OPERATIONS), str(REGIONS // self.threads)),
                stdin=subprocess.PIPE,
            )
            for seed, report in enumerate(self.reports)
        ]
        for command in running:
            assert command.stdout.readline() == "ready\n"
        for command in running:
            command.stdin.write("\n")
            command.stdin.flush()
        for command in running:
            out, err = command.communicate(timeout=LIMIT_S)
            assert command.returncode == 0, err
            assert "krex: " not in err
            self.said.append(json.loads(out))
        self.krex.stop_controller()  # and the device with it: its log is whole

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for r in self.reports for line in r.read_text().splitlines()]

    def claims(self) -> Path:
        """What the programs would claim, by their own clock: alone in each region."""
        path = self.krex.folder / "claims.jsonl"
        with path.open("w") as file:
            for said in self.said:
                for timed in said["timed"]:
                    claim = {"schema": "krex.region", "device": "sim:0", "exclusive": True}
                    claim |= {"region_id": timed["name"], "command": str(said["pid"])}
                    claim |= {"granted_ns": timed["begin_ns"], "released_ns": timed["end_ns"]}
                    file.write(json.dumps(claim | {"holder_pids": [said["pid"]]}) + "\n")
        return path

    def launches(self) -> list[tuple[int, int]]:
        """Of all launches in regions: how long each should take, and how long it took, in ns."""
        spins = [i for i in read(self.log).intervals if i.name == "krex_spin"]
        found = []
        for said in self.said:
            own = [i for i in spins if i.pid == said["pid"]]
            for timed in said["timed"]:
                begin, end = timed["begin_ns"], timed["end_ns"]
                inside = [i for i in own if begin <= i.arrival_ns <= end]
                assert len(inside) == LAUNCHES
                found += [(timed["ns"] // LAUNCHES, i.end_ns - i.start_ns) for i in inside]
        return found

    def check(self, *reports: Path) -> tuple[int, dict[str, Any]]:
        """What `krex sim check` finds."""
        words = ["sim", "check", "--json", str(self.log), *map(str, reports)]
        done = self.krex(*words)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def random_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """random_program.c, linked with the simulated driver as with a toolkit's."""
    folder = tmp_path_factory.mktemp("random")
    (folder / "libcuda.so").symlink_to(BUILT / "libcuda.so.1")
    command: list[str | Path] = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{ROOT / 'shim'}"]
    command += ["-o", folder / "program", Path(__file__).with_name("random_program.c")]
    subprocess.run([*command, f"-L{folder}", "-lcuda", "-lpthread"], check=True, timeout=120)
    return folder / "program"


@pytest.fixture
def fleet(cli: Krex, random_program: Path) -> Fleet:
    return Fleet(cli, random_program)


def test_no_work_of_another_is_on_the_device_in_a_region(fleet):
    # GIVEN 16 commands, each of 2 threads that submit anything in any order
    # WHEN they run at once, and mark 224 regions between them
    fleet.run()
    records = fleet.records()
    exclusive = [r for r in records if r["exclusive"]]
    # THEN nearly all were exclusive, and the others say why
    assert len(records) == COMMANDS * REGIONS
    assert len(exclusive) >= len(records) - 1, [r["reasons"] for r in records]
    assert all(r["reasons"] for r in records if not r["exclusive"])
    # AND the device saw nobody else in any of them
    status, found = fleet.check(*fleet.reports)
    assert (status, found["violations"], found["exclusive"]) == (0, [], len(exclusive))
    # AND not by the programs' own clock either
    if len(exclusive) == len(records):
        assert fleet.check(fleet.claims())[1]["violations"] == []


def test_the_same_commands_without_the_gate_are_caught(fleet):
    # GIVEN the same commands, which nothing keeps apart
    fleet.run("--exclusive", "none")
    # WHEN their regions are checked as if they had been exclusive
    status, found = fleet.check(fleet.claims())
    # THEN most of them had company
    assert status == 1
    assert len(found["violations"]) > found["regions"] / 2


def test_a_kernel_in_a_region_takes_what_it_takes_alone(cli, random_program):
    # GIVEN programs whose regions have launches of a known duration in device time
    fleet = Fleet(cli, random_program, threads=1)
    # WHEN eight of them run at once
    fleet.run(commands=8)
    assert all(r["exclusive"] for r in fleet.records())
    # THEN each of these launches took just that on the device
    assert all(taken == wanted for wanted, taken in fleet.launches())


def test_the_same_kernels_without_the_gate_take_longer(cli, random_program):
    fleet = Fleet(cli, random_program, threads=1)
    fleet.run("--exclusive", "none", commands=8)
    launches = fleet.launches()
    longer = [taken for wanted, taken in launches if taken > 1.5 * wanted]
    assert len(longer) > len(launches) / 20
