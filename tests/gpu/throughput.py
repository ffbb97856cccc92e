# SPDX-License-Identifier: Apache-2.0
"""Section f: eight short commands, as an agent starts them: import, compile, check, time.

One by one, as who wants undisturbed numbers does today; all at once without protection; and all at
once under KREX.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.attempt import NotRun, attempt
from gpu.programs_of import program, python
from gpu.rows import Job
from gpu.stage import EXIT_MISSING, Stage, count_exclusive, reasons, stage

COMMANDS = 8
_LIMIT_S = 145.0


def main(job: Job) -> None:
    """A row for each mode, as soon as it is known."""
    attempt(job, "throughput", lambda: _measure(job), _LIMIT_S)


def _measure(job: Job) -> None:
    with stage(job, slots=COMMANDS) as made:
        _together(made, [[]])  # has the packages in memory, which whoever came first would pay for
        # First what is new, then what others do: a run that is cut short has the pair that matters.
        reports = [made.folder / f"report-{number}" for number in range(COMMANDS)]
        protected = _together(made, [[*made.words(report)] for report in reports])
        _row(job, "together, under KREX", protected, reports)
        _row(job, "together, unprotected", _together(made, [[] for _ in range(COMMANDS)]))
        _row(job, "one by one", sum(_together(made, [[]]) for _ in range(COMMANDS)))


def _together(made: Stage, before: Sequence[list[str]]) -> float:
    """Seconds for as many commands as there are lists of words to put before them."""
    with tempfile.TemporaryDirectory(dir=made.folder) as caches:
        started = time.monotonic()
        processes = [
            subprocess.Popen(
                [*words, *python(program("short_command.py"))],
                # Each compiles: none finds what another one, or an earlier run, has compiled.
                env=made.environment | {"TRITON_CACHE_DIR": f"{caches}/{number}"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number, words in enumerate(before)
        ]
        ends = [(process.communicate(timeout=_LIMIT_S), process) for process in processes]
        taken = time.monotonic() - started
    for (_, said), process in ends:
        if process.returncode == EXIT_MISSING:
            raise NotRun(said.strip().splitlines()[-1])
        if process.returncode:
            raise RuntimeError(f"a command failed: {said.strip()[-300:]}")
    return taken


def _row(job: Job, name: str, taken_s: float, reports: Sequence[Path] = ()) -> None:
    text = f"{taken_s:.1f} s for {COMMANDS} commands, {COMMANDS / taken_s * 60:.1f} a minute"
    values = {"taken_s": taken_s, "commands": COMMANDS}
    if not reports:
        job.measured(name, text, **values)
        return
    records: list[dict[str, Any]] = [
        json.loads(line)
        for report in reports
        if report.exists()
        for line in report.read_text().splitlines()
    ]
    exclusive = count_exclusive(records)
    why = reasons(records)
    text += f"; {exclusive} of {len(records)} regions exclusive" + (f" ({why})" if why else "")
    job.judge(name, exclusive == len(records) >= COMMANDS, text, exclusive=exclusive, **values)


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
