# SPDX-License-Identifier: Apache-2.0
"""A section's own controller, and commands under it; all of it ends with the section's group."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpu.attempt import NotRun
from gpu.programs_of import program, python
from gpu.rows import Job

EXIT_MISSING = 77  # a program that lacks something says what on stderr
_START_S = 40.0
_POLL_S = 0.01


class Done(NamedTuple):
    """A command that ended, and the records of its regions."""

    status: int
    stdout: str
    stderr: str
    records: list[dict[str, Any]]

    def why(self) -> str:
        """What it said last."""
        said = self.stderr.strip().splitlines()
        return said[-1] if said else f"exit status {self.status}"


class Stage:
    """Made by `stage`."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.folder = folder
        self._device = job.device
        self.environment = os.environ | {"KREX_SOCKET": str(folder / "s")}

    def words(self, report: Path | None) -> list[str]:
        """`krex run`, up to the command."""
        words = [sys.executable, "-m", "krex.cli", "run", "--quiet", "--device", self._device]
        return [*words, *([] if report is None else ["--report", str(report)]), "--"]

    def run(self, command: Sequence[str], limit_s: float) -> Done:
        """Run a command under KREX. Raises NotRun if it lacks something, TimeoutExpired."""
        # A name that no other check takes: each is a process, with its own copy of this object.
        report = Path(tempfile.mkdtemp(dir=self.folder), "report")
        done = subprocess.run(
            [*self.words(report), *command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        lines = report.read_text().splitlines() if report.exists() else []
        records = [json.loads(line) for line in lines]
        found = Done(done.returncode, done.stdout, done.stderr, records)
        if found.status == EXIT_MISSING:
            raise NotRun(found.why())
        return found

    @contextlib.contextmanager
    def busy(
        self, count: int, milliseconds: float, steps: int, *, protected: bool = True
    ) -> Iterator[None]:
        """So many siblings that submit kernels all the time; under KREX, or without."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name, contextlib.ExitStack() as ends:
            files = [Path(name, str(number)) for number in range(count)]
            for file in files:
                words = python(program("busy.py"), str(milliseconds), str(file), str(steps))
                command = [*self.words(None), *words] if protected else words
                ends.enter_context(running(command, self.environment))
            wait_until(lambda: all(file.exists() for file in files), "a busy sibling")
            yield


@contextlib.contextmanager
def stage(job: Job, slots: int) -> Iterator[Stage]:
    """A controller with so many slots a device, from here to the end."""
    with tempfile.TemporaryDirectory(prefix="krex-gpu-") as folder:
        made = Stage(job, Path(folder))
        serve = [sys.executable, "-m", "krex.cli", "serve", "--slots", str(slots)]
        with running(serve, made.environment):
            wait_until(Path(folder, "s").exists, "the controller")
            yield made


@contextlib.contextmanager
def running(command: Sequence[str], environment: dict[str, str]) -> Iterator[None]:
    """A process in the background; what it says is lost."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdin=null, stdout=null, stderr=null)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(done: Callable[[], bool], what: str) -> None:
    """Wait for a condition. Raises TimeoutError."""
    deadline = time.monotonic() + _START_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not start within {_START_S:g} s")
        time.sleep(_POLL_S)


def count_exclusive(records: Sequence[dict[str, Any]]) -> int:
    """How many were, and show submissions: where none passes the gate, exclusive means nothing."""
    return sum(bool(record["exclusive"] and record.get("submissions")) for record in records)


def reasons(records: Sequence[dict[str, Any]]) -> str:
    """Why those that `count_exclusive` does not count were not."""
    found = {reason for record in records for reason in record["reasons"]}
    if any(record["exclusive"] and not record.get("submissions") for record in records):
        found.add("no submission was seen")
    return ", ".join(sorted(found))
