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
DEADLINE_S = 60


def run_page(page: Path, krex: Krex) -> int:
    """Run all examples; returns how many there were. Raises AssertionError with what went wrong."""
    found = [(b["kind"], b["text"]) for b in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    for (kind, text), (next_kind, said) in zip(found, [*found[1:], ("", "")], strict=True):
        if " " in kind:
            (krex.folder / kind.split()[1]).write_text(text)
        elif kind == "sh":
            done = _shell(text, krex)
            expected = said if next_kind == "text" else ""
            pattern = ".*".join(map(re.escape, expected.split("...")))
            assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
            assert re.fullmatch(pattern, done.stdout, re.DOTALL), (
                f"{text}{done.stdout}{done.stderr}"
            )
    return sum(kind == "sh" for kind, _ in found)


def _shell(script: str, krex: Krex) -> subprocess.CompletedProcess[str]:
    """As a reader would, with krex and python on PATH."""
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=krex.folder,
        env=krex.env | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
