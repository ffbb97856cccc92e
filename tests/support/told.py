# SPDX-License-Identifier: Apache-2.0
"""A program on a simulated device that does to the driver what a test tells it, word by word."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from support.command_line import Krex
from support.waiting import wait_for

PROGRAM = Path(__file__).parents[1] / "integration" / "cuda" / "told_program.py"
_ids = itertools.count()


class Told:
    """Runs it; `words` are what it does at first."""

    def __init__(
        self, krex: Krex, *words: str, device: int = 0, options: tuple[str, ...] = (), **env: str
    ) -> None:
        self.report = krex.folder / f"told-{next(_ids)}.jsonl"
        options = ("--sim-gpus", "2", "--report", str(self.report), *options)
        self._entered = 0
        env = {"CUDA_VISIBLE_DEVICES": str(device), **env}
        self.run = krex.python(PROGRAM, options=options, **env)
        self.does(*words)

    def tell(self, word: str) -> None:
        """Without waiting for what comes of it."""
        self._entered += word == "enter"
        assert self.run.stdin
        self.run.stdin.write(f"{word}\n")
        self.run.stdin.flush()

    def answers(self) -> int:
        """When, by the monotonic clock, the word succeeded that was told last."""
        assert self.run.stdout
        result, when_ns = self.run.stdout.readline().split()
        assert result == "0"
        return int(when_ns)

    def does(self, *words: str) -> None:
        """Each in turn, with success."""
        for word in words:
            self.tell(word)
            self.answers()

    def records(self) -> list[dict[str, Any]]:
        """Of the regions that have ended."""
        if not self.report.exists():
            return []
        return [json.loads(line) for line in self.report.read_text().splitlines()]

    def last_record(self) -> dict[str, Any]:
        """That of the region that it was in last."""
        return wait_for(lambda: len(r := self.records()) == self._entered and r[-1])
