# SPDX-License-Identifier: Apache-2.0
"""idle_program.py on a simulated device: one step after the other, as it is told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.command_line import Krex
from support.waiting import DEADLINE_S

PROGRAM = Path(__file__).parents[1] / "integration" / "cuda" / "idle_program.py"


class Command:
    """One `krex run`, on the device that all of them share."""

    def __init__(self, cli: Krex, way: str, *options: str, **env: str) -> None:
        self.report = cli.folder / f"{way}.jsonl"
        log = str(cli.folder / "device.tsv")
        run = ("run", "--sim", "--sim-log", log, "--report", str(self.report), *options)
        program = (cli.python_path, str(PROGRAM), way)
        self._process = cli.start(*run, "--", *program, stdin=subprocess.PIPE, env=cli.env | env)
        self.gets("ready")

    def tell(self) -> None:
        """Without waiting for what comes of it."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def gets(self, to: str) -> int:
        """Until it is there; when that was."""
        there, when_ns = self._process.stdout.readline().split()
        assert there == to
        return int(when_ns)

    def goes_on(self, to: str) -> int:
        """The next step, and its end."""
        self.tell()
        return self.gets(to)

    def ends(self) -> dict[str, Any]:
        """The record of its first region."""
        return self.ends_and_says()[1][0]

    def ends_and_says(self) -> tuple[str, list[dict[str, Any]]]:
        """What `krex run` says, and its report."""
        _, said = self._process.communicate(timeout=DEADLINE_S)
        assert self._process.returncode == 0, said
        return said, [json.loads(line) for line in self.report.read_text().splitlines()]
