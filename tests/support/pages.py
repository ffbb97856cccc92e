# SPDX-License-Identifier: Apache-2.0
"""A page whose examples are run: ```LANGUAGE FILE is that file; ```sh is run, and prints what the
```text after it says, where "..." stands for anything. In their order, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.command_line import Krex

BLOCK = re.compile(r"^```(?P<kind>[^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.+)\n", re.MULTILINE)
DEADLINE_S = 60


def sections(page: Path) -> dict[str, str]:
    """The text below each heading, and "" for what stands before the first."""
    parts = HEADING.split("## \n" + page.read_text(encoding="utf-8"))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run_examples(page: str, krex: Krex, python: str = sys.executable) -> int:
    """Run all examples of a text, with `python` as that; returns how many there were.

    Raises AssertionError with what went wrong.
    """
    found = [(b["kind"], b["text"]) for b in BLOCK.finditer(page)]
    for (kind, text), (next_kind, said) in zip(found, [*found[1:], ("", "")], strict=True):
        if " " in kind:
            (krex.folder / kind.split()[1]).write_text(text)
        elif kind == "sh":
            done = _shell(text, krex, python)
            expected = said if next_kind == "text" else ""
            assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
            assert matches(expected, done.stdout), f"{text}{done.stdout}{done.stderr}"
    return sum(kind == "sh" for kind, _ in found)


def matches(said: str, printed: str) -> bool:
    """Whether that was printed, where "..." stands for anything."""
    pattern = ".*".join(map(re.escape, said.split("...")))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def _shell(script: str, krex: Krex, python: str) -> subprocess.CompletedProcess[str]:
    """As a reader would, with krex and python on PATH."""
    places = (Path(python).parent, Path(sys.executable).parent, os.environ["PATH"])
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=krex.folder,
        env=krex.env | {"PATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
