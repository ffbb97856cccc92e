# SPDX-License-Identifier: Apache-2.0
"""The simulated devices, without KREX: their process, and programs that load their driver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sim_device import FOLDER, ROOT, Device
from support.waiting import DEADLINE_S

HERE = Path(__file__).parent
MODEL = ("contexts.context_ns 1000000", "contexts.load_ns 1000")  # quicker than any real device


class Devices:
    """Two devices. `model` are lines of the flat form (see `krex sim model`)."""

    def __init__(self, folder: Path, model: tuple[str, ...]) -> None:
        self.folder = folder
        path = folder / "model"
        path.write_text("".join(f"{line}\n" for line in (*MODEL, *model)))
        arguments = ("--devices", "2", "--model", str(path), "--linger", str(2 * DEADLINE_S))
        self._device = Device(folder, Path(), *arguments)
        self.pid = self._device.process.pid
        self.close = self._device.close

    def environment(self) -> dict[str, str]:
        """What makes a program find the driver, and the driver the devices."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        return kept | {
            "KREX_SIM_SOCKET": str(self._device.socket),
            "LD_LIBRARY_PATH": str(FOLDER),
            "PYTHONPATH": str(HERE),  # cu.py
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
        }

    def run(self, *command: str | Path, **environment: str) -> Any:
        """Run a program to its end; what it printed, as JSON."""
        done = subprocess.run(
            list(map(str, command)),
            env=self.environment() | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=3 * DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def python(
        self, client: str, *arguments: str, python: str = sys.executable, **environment: str
    ) -> Any:
        """Run one of clients/*.py."""
        return self.run(python, HERE / "clients" / client, *arguments, **environment)


@pytest.fixture
def devices(place: Path, request: pytest.FixtureRequest) -> Iterator[Devices]:
    """Two devices, whose process runs. A test may have one with `model` lines by parametrizing."""
    started = Devices(place, getattr(request, "param", ()))
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """clients/linked.c, with the driver among its libraries."""
    compiler = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "libcuda.so").symlink_to(FOLDER / "libcuda.so.1")  # as a toolkit has it
    program = tmp_path / "linked"
    command: list[str | Path] = [compiler, "-std=gnu11", f"-I{ROOT / 'shim'}", "-o", program]
    command += [HERE / "clients" / "linked.c", f"-L{tmp_path}", "-lcuda", "-lpthread"]
    subprocess.run(command, check=True)
    return program
