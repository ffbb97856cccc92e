# SPDX-License-Identifier: Apache-2.0
"""The simulated devices, without KREX: their process, and programs that load their driver."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sim_device import FOLDER, ROOT
from support.sim_programs import Devices

HERE = Path(__file__).parent


@pytest.fixture
def devices(place: Path, request: pytest.FixtureRequest) -> Iterator[Devices]:
    """Two devices, whose process runs. A test may have one with `model` lines by parametrizing."""
    started = Devices(place, HERE, getattr(request, "param", ()))
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
