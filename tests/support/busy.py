# SPDX-License-Identifier: Apache-2.0
"""Clients under `krex run --sim`, beside a command that keeps the simulated device busy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.command_line import Krex
from support.waiting import DEADLINE_S

VARIES = ("ms", "spin_ms")  # of the device's time: not on a device that is shared


class Busy:
    """A command that keeps the device busy, and clients that run beside it."""

    def __init__(self, krex: Krex, folder: Path, *program: str | Path) -> None:
        self.krex = krex
        self.log, self.report = krex.folder / "device.tsv", krex.folder / "report.jsonl"
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        krex.env |= {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(krex.folder / "triton")}
        krex.env |= {"NUMBA_CACHE_DIR": str(krex.folder / "numba")}
        run = ("run", "--sim-log", str(self.log), "--sim-gpus", "1", "--")
        self._busy = krex.popen(*krex.base, *run, sys.executable, *map(str, program))
        assert self._busy.stdout
        assert self._busy.stdout.readline() == "busy\n"

    def run(self, *command: str, **environment: str) -> str:
        """What it prints."""
        words = [*self.krex.base, "run", "--sim", "--report", str(self.report), "--", *command]
        done = subprocess.run(
            words,
            env=self.krex.env | environment,
            cwd=self.krex.folder,
            capture_output=True,
            text=True,
            timeout=3 * DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def only_record(self) -> dict[str, Any]:
        """That of the region; by the word of the device, nobody was beside it."""
        self._busy.communicate(timeout=DEADLINE_S)
        self.krex.stop_controller()
        done = self.krex("sim", "check", "--json", str(self.log), str(self.report))
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["exclusive"] == 1
        [record] = self.krex.records(self.report.name)
        return record


def is_the_same(found: dict[str, Any], without: dict[str, Any]) -> bool:
    durations = [of.pop(name) for of in (found, without) for name in VARIES if name in of]
    return found == without and all(ms > 0 for ms in durations)
