# SPDX-License-Identifier: Apache-2.0
"""`krex.region` in the interpreters of tenants: with krex and without, old and new."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("marks_program.py")
MARKED = [
    "with",
    "plain",
    "named",
    "Benchmark.method",
    "Benchmark.of_class",
    "coroutine",
    "raises",
    "outer",
    "",
    "?" + "ü" * 63,  # as much of it as fits into 127 bytes
]


def interpreter(version: str) -> list[str]:
    """A CPython that lacks krex; without site-packages, so that nobody's installation matters."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    name = f"python{version}"
    for path in [*pyenv.glob(f"versions/{version}.*/bin/{name}"), Path("/usr/bin", name)]:
        if path.exists():
            return [str(path), "-S"]
    pytest.skip(f"there is no {name} here")


@pytest.fixture(autouse=True)
def _no_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


def run(words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words, str(PROGRAM)],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_an_interpreter_without_krex_marks_regions_under_krex_run(cli: Krex, version: str) -> None:
    words = interpreter(version)
    # GIVEN an interpreter that cannot import krex by itself
    assert "No module named 'krex'" in run(words).stderr
    result = cli("run", "--report", "r", "--", *words, str(PROGRAM))
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    # THEN each outermost mark is a region
    records = cli.records("r")
    assert [r["name"] for r in records] == MARKED
    assert [r["reasons"] for r in records if not r["exclusive"]] == []
    assert [r["index"] for r in records] == list(range(len(MARKED)))


def test_an_interpreter_with_krex_of_its_own_keeps_it(cli: Krex) -> None:
    result = cli("run", "--report", "r", "--", sys.executable, str(PROGRAM))
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    assert [r["name"] for r in cli.records("r")] == MARKED


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_marks_do_nothing_without_krex(version: str) -> None:
    result = run(interpreter(version), PYTHONPATH=str(ROOT))
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_marks_switched_off_leave_no_record(cli: Krex) -> None:
    cli.env["KREX_REGION"] = "none"
    result = cli("run", "--report", "r", "--", sys.executable, str(PROGRAM))
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    assert cli.records("r") == []
