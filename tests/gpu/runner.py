# SPDX-License-Identifier: Apache-2.0
"""Running the sections one after the other, each in a session that ends at its limit.

In it each check has a process group of its own (attempt.py), so that it can end before the section.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from gpu.rows import Job

_POLL_S = 0.02
# With less of the budget left than this, no section comes to anything.
_LEAST_S = 3.0
_RECOVER_S = 20.0


@dataclass(frozen=True)
class Section:
    """A program that is given a Job as its last argument."""

    letter: str
    title: str
    command: Sequence[str]
    limit_s: float


def run_all(
    sections: Sequence[Section],
    job: Job,
    budget_s: float,
    environment: Mapping[str, str],
    folder: str,
) -> None:
    """Run them in order, in a folder, and append a row for each that did not come to its end."""
    deadline = time.monotonic() + budget_s
    for section in sections:
        left = deadline - time.monotonic()
        mine = replace(job, section=section.letter, limit_s=min(section.limit_s, left))
        if left < _LEAST_S:
            mine.not_run(section.title, f"the budget of {budget_s:g} s is spent")
            continue
        print(f"gpu-check: {section.letter}: {section.title}", file=sys.stderr, flush=True)
        _run(section, mine, environment, folder)


def _run(section: Section, job: Job, environment: Mapping[str, str], folder: str) -> None:
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryDirectory(prefix="krex-check-") as scratch,
    ):
        process = subprocess.Popen(
            [*section.command, job.to_argument()],
            env={**environment, "TMPDIR": scratch},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            in_time = ended_within(process.pid, job.limit_s)
        finally:
            end_session(process.pid)
            status = process.wait()
            _recover(environment, scratch)
        if not in_time:
            job.failed(section.title, f"killed at its limit of {job.limit_s:.0f} s")
        elif status:
            job.failed(section.title, f"{describe(status)}: {last_line(output)}")


def _recover(environment: Mapping[str, str], scratch: str) -> None:
    """Have removed what a controller (stage.py) leaves that was killed: its journal says what."""
    for folder in Path(scratch).glob("krex-gpu-*/journal"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "-m", "krex.cli", "thaw", "--all"],
                env={**environment, "KREX_SOCKET": str(folder.with_name("s"))},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_RECOVER_S,
                check=False,
            )


def ended_within(pid: int, limit_s: float) -> bool:
    """Whether a child of ours ends in time. It is left as a zombie, so that its number stays its.

    So who then ends its group or session cannot meet another that got the same number meanwhile.
    """
    deadline = time.monotonic() + limit_s
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, pid, flags) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def end_group(leader: int) -> None:
    """Kill what is left of a group; its leader has not been waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody, or zombies only
        os.killpg(leader, signal.SIGKILL)


def end_session(leader: int) -> None:
    """Kill what is left of a session, group by group; its leader has not been waited for."""
    end_group(leader)
    while groups := _groups(leader):
        for group in groups:
            end_group(group)
        time.sleep(_POLL_S)


def _groups(session: int) -> set[int]:
    """Of those in the session who still run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group, of, *_ = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(of) == session and state not in "XZ":
            found.add(int(group))
    return found


def describe(status: int) -> str:
    """How a process ended, by its return code."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def last_line(output: IO[bytes]) -> str:
    """What somebody said last, which mostly says why."""
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
