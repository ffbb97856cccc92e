# SPDX-License-Identifier: Apache-2.0
"""The simulated devices, without KREX: their process, and programs that load their drivers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.sim_device import FOLDER, Device
from support.waiting import DEADLINE_S

MODEL = ("contexts.context_ns 1000000", "contexts.load_ns 1000")  # quicker than any real device
VISIBLE = ("CUDA_", "HIP_", "ROCR_")


class Devices:
    """Two devices, for the programs of one folder. `model` are lines as of `krex sim model`."""

    def __init__(self, folder: Path, programs: Path, model: tuple[str, ...]) -> None:
        self.folder = folder
        self._programs = programs
        path = folder / "model"
        path.write_text("".join(f"{line}\n" for line in (*MODEL, *model)))
        arguments = ("--devices", "2", "--model", str(path), "--linger", str(2 * DEADLINE_S))
        self._device = Device(folder, Path(), *arguments)
        self.pid = self._device.process.pid
        self.close = self._device.close

    def environment(self) -> dict[str, str]:
        """What makes a program find the driver, and the driver the devices."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(VISIBLE)}
        return kept | {
            "KREX_SIM_SOCKET": str(self._device.socket),
            "LD_LIBRARY_PATH": str(FOLDER),
            "PYTHONPATH": str(self._programs),  # what they share
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
        }

    def start(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, whatever that is."""
        return subprocess.run(
            list(map(str, command)),
            env=self.environment() | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=3 * DEADLINE_S,
        )

    def run(self, *command: str | Path, **environment: str) -> Any:
        """Run a program that succeeds; what it printed, as JSON."""
        done = self.start(*command, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def python(
        self,
        client: str,
        *arguments: str | Path,
        python: str = sys.executable,
        **environment: str,
    ) -> Any:
        """Run one of clients/*.py."""
        return self.run(python, self._programs / "clients" / client, *arguments, **environment)
