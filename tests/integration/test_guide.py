# SPDX-License-Identifier: Apache-2.0
"""The user guide's examples do what the guide says.

A block of ```LANGUAGE FILE is that file; one of ```sh is run, and prints what the ```text after it
says, where "..." stands for anything. The blocks are run in their order, in one folder.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
BLOCK = re.compile(r"^```(?P<kind>[^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
DEADLINE_S = 60


def blocks() -> list[tuple[str, str]]:
    return [(b["kind"], b["text"]) for b in BLOCK.finditer(GUIDE.read_text(encoding="utf-8"))]


def matches(said: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, said.split("...")))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def test_dots_stand_for_anything_and_nothing_else_does():
    assert matches("took ... ms\n", "took 0.1 ms\n")
    assert not matches("took ... ms\n", "took 0.1 s\n")
    assert not matches("3\n", "33\n")


@pytest.fixture
def shell(krex, monkeypatch):
    """Run a script as a reader would: with krex and python on PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-eu", "-o", "pipefail", "-c", script]
        return subprocess.run(
            command,
            cwd=krex.folder,
            env=krex.env | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    return run


@pytest.mark.timeout(300)
def test_the_examples_do_what_the_guide_says(krex, shell):
    found = blocks()
    assert sum(kind == "sh" for kind, _ in found) >= 10
    for (kind, text), (next_kind, said) in zip(found, [*found[1:], ("", "")], strict=True):
        if " " in kind:
            (krex.folder / kind.split()[1]).write_text(text)
        elif kind == "sh":
            done = shell(text)
            assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
            expected = said if next_kind == "text" else ""
            assert matches(expected, done.stdout), f"{text}{done.stdout}{done.stderr}"
    # What the guide says of the reports without printing them.
    assert [r["exclusive"] for r in krex.records("regions.jsonl")] == [True]
    assert [r["name"] for r in krex.records("decorated.jsonl")] == ["first", "the second"]
    assert [r["name"] for r in krex.records("c.jsonl")] == ["loop"]
    assert [r["name"] for r in krex.records("preloaded.jsonl")] == ["twice"]
