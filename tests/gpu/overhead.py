# SPDX-License-Identifier: Apache-2.0
"""Section c: what the shim adds to the launch of an empty kernel, on this driver.

Three processes take turns, round after round: two without the shim, whose difference is the
control, and one with it, which launches twice: with the gate open, and as the holder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.attempt import NotRun, attempt
from gpu.programs_of import ROOT, program
from gpu.rows import Job
from gpu.stage import count_exclusive, reasons, stage

from krex import paths
from krex.eval.statistics import Spread

LAUNCHES = 400  # fewer launches than a queue has room for: none of them waits
_SUBMISSIONS = LAUNCHES + LAUNCHES // 4  # launch_rounds warms up, each time
_WARM_UP, _LEAST, _MOST = 20, 12, 400  # rounds
_MEASURE_S, _LIMIT_S = 15.0, 35.0
_RECORD_S = 2.0


class Launcher:
    """A process of launch_rounds.c."""

    def __init__(self, binary: str, environment: dict[str, str]) -> None:
        command = [binary, str(Path(__file__).with_name("kernels.ptx"))]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        if self._read() != "ready":
            raise RuntimeError(f"launch_rounds: {self._process.communicate()[1].strip()}")

    def _read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def launch(self, how: str) -> float:
        """Nanoseconds a launch; `how` is "open" or "region"."""
        assert self._process.stdin
        self._process.stdin.write(f"{how} {LAUNCHES}\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """Have it end."""
        self._process.communicate(timeout=10)


def main(job: Job) -> None:
    """A row for what is added, and one that says whether the shim was really there."""
    attempt(job, "overhead", lambda: _measure(job), _LIMIT_S)


def _measure(job: Job) -> None:
    with stage(job, slots=2) as made:
        binary, report = _compile(made.folder), made.folder / "report"
        bare = {k: v for k, v in made.environment.items() if k != "LD_PRELOAD"}
        shim = bare | {"LD_PRELOAD": paths.library_path(), "KREX_REPORT": str(report)}
        with contextlib.ExitStack() as ends:
            launchers = []
            for environment in (bare, bare, shim):
                launchers.append(Launcher(binary, environment))
                ends.callback(launchers[-1].close)
            rows = _rounds(launchers)
        _report(job, rows[_WARM_UP:])
        _check_records(job, report, len(rows))


def _compile(folder: Path) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise NotRun("there is no C compiler on the PATH")
    made = str(folder / "launch_rounds")
    words = [compiler, "-O2", f"-I{ROOT / 'shim'}", "-o", made, program("launch_rounds.c"), "-ldl"]
    subprocess.run(words, check=True, timeout=30)
    return made


def _rounds(launchers: Sequence[Launcher]) -> list[list[float]]:
    """As many as there is time for, with those to warm up."""
    enough, found = time.monotonic() + _MEASURE_S, list[list[float]]()
    while len(found) < _WARM_UP + _LEAST or (
        len(found) < _WARM_UP + _MOST and time.monotonic() < enough
    ):
        found.append(_round(launchers, len(found)))
    return found


def _round(launchers: Sequence[Launcher], number: int) -> list[float]:
    """In another order each time: who comes after whom makes a difference."""
    bare, again, shim = launchers
    cases = [(bare, "open"), (again, "open"), (shim, "open"), (shim, "region")]
    found = [0.0] * len(cases)
    for place in range(len(cases)):
        case = (number + place) % len(cases)
        launcher, how = cases[case]
        found[case] = launcher.launch(how)
    return found


def _report(job: Job, rows: Sequence[Sequence[float]]) -> None:
    direct = Spread.of([row[0] for row in rows])
    job.measured("a launch without KREX", f"{direct.median:.0f} ns", launch_ns=direct.median)
    names = ("added by nothing (control)", "added, gate open", "added, in a region")
    for column, name in enumerate(names, start=1):
        added = Spread.of([row[column] - row[0] for row in rows])
        text = f"{added.median:+.1f} ns a launch ({added.q1:+.1f} to {added.q3:+.1f}), "
        text += f"{len(rows)} rounds of {LAUNCHES} launches"
        job.measured(name, text, added_ns=added.median, q1_ns=added.q1, q3_ns=added.q3)


def _records(report: Path, expected: int) -> list[dict[str, Any]]:
    """The controller writes the last one when the process has ended, soon after."""
    deadline = time.monotonic() + _RECORD_S
    while True:
        lines = report.read_text().splitlines() if report.exists() else []
        if len(lines) >= expected or time.monotonic() > deadline:
            return [json.loads(line) for line in lines]
        time.sleep(0.01)


def _check_records(job: Job, report: Path, rounds: int) -> None:
    records = _records(report, rounds)
    exclusive = count_exclusive(records)
    counted = sum(record.get("submissions", 0) == _SUBMISSIONS for record in records)
    text = f"{len(records)} regions of {rounds} recorded, {exclusive} exclusive, "
    text += f"{counted} with {_SUBMISSIONS} submissions"
    why = reasons(records)
    right = len(records) == exclusive == counted == rounds
    job.judge("the shim was there", right, f"{text}: {why}" if why else text)


if __name__ == "__main__":
    os.environ.pop("LD_PRELOAD", None)
    main(Job.from_argument(sys.argv[1]))
