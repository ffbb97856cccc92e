# SPDX-License-Identifier: Apache-2.0
"""What was found, a row each: written to a file of JSON lines as soon as it is known."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PASSED, FAILED, MEASURED, NOT_RUN = "passed", "failed", "measured", "not run"


@dataclass(frozen=True)
class Row:
    """One finding. `values` has what the text says, unrounded, and more; seconds end in _s."""

    run: str
    section: str
    check: str
    verdict: str
    text: str
    simulated: bool = False
    values: dict[str, Any] = field(default_factory=dict)


def append(path: str, row: Row) -> None:
    """One write at the end of the file: whoever is killed next, it stays, and it stays whole."""
    line = json.dumps(asdict(row)) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def last_run(path: str) -> list[Row]:
    """The rows of the newest run in a file. Raises OSError, or ValueError if it has none."""
    rows = [row for row in map(_parse, Path(path).read_text().splitlines()) if row]
    if not rows:
        raise ValueError(f"{path} has no rows")
    return [row for row in rows if row.run == rows[-1].run]


def _parse(line: str) -> Row | None:
    try:
        return Row(**json.loads(line))
    except (ValueError, TypeError):
        return None  # cut off, where a disk was full or a machine went away


@dataclass(frozen=True)
class Job:
    """What a section is told, as one argument: where its rows go, and what it checks."""

    rows: str
    run: str
    section: str
    limit_s: float
    device: str  # its key, as in a record
    simulated: bool

    def to_argument(self) -> str:
        """As a word for a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_argument(cls, word: str) -> Job:
        """What `to_argument` made."""
        return cls(**json.loads(word))

    def add(self, check: str, verdict: str, text: str, **values: Any) -> None:
        """Append a row of this section."""
        row = Row(self.run, self.section, check, verdict, text, self.simulated, values)
        append(self.rows, row)

    def passed(self, check: str, text: str, **values: Any) -> None:
        """It is as the design takes it to be."""
        self.add(check, PASSED, text, **values)

    def failed(self, check: str, text: str, **values: Any) -> None:
        """It is not."""
        self.add(check, FAILED, text, **values)

    def measured(self, check: str, text: str, **values: Any) -> None:
        """A figure, for the reader to judge."""
        self.add(check, MEASURED, text, **values)

    def not_run(self, check: str, why: str) -> None:
        """`why` completes "not run, because ..."."""
        self.add(check, NOT_RUN, f"because {why}")

    def judge(self, check: str, right: bool, text: str, **values: Any) -> None:
        """Passed or failed."""
        self.add(check, PASSED if right else FAILED, text, **values)
