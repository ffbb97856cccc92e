# SPDX-License-Identifier: Apache-2.0
"""The simulated devices, without KREX, for programs that use HIP."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clients import PYTHON
from support.sim_device import FOLDER, ROOT
from support.sim_programs import Devices

HERE = Path(__file__).parent
CODE = ROOT / "tests" / "unit" / "data" / "sim" / "kernels.gfx90a.hsaco"


def headers(release: str) -> Path:
    """Those of Debian's package libamdhip64-dev (5.2), or of Triton's wheel (7.x)."""
    if release == "5":
        found = (ROOT / "build" / "hip-headers").glob("5.2-*")
        return next(found, Path("/usr/include"))
    return next(
        PYTHON.parents[1].glob("lib/*/site-packages/triton/backends/amd/include"), Path("none")
    )


@pytest.fixture
def code() -> Path:
    """The kernels of the tests, as an AMD code object."""
    return CODE


@pytest.fixture
def devices(place: Path, request: pytest.FixtureRequest) -> Iterator[Devices]:
    """Two devices, whose process runs. A test may have one with `model` lines by parametrizing."""
    started = Devices(place, HERE, getattr(request, "param", ()))
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(params=["5", "7"])
def linked(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """clients/linked.cpp, by the vendor's headers, with the runtime among its libraries."""
    folder = headers(request.param)
    if not (folder / "hip" / "hip_runtime_api.h").exists():
        assert os.environ.get("KREX_TEST_CLIENTS") != "required" or request.param != "7"
        pytest.skip(f"no headers of HIP {request.param} (make clients)")
    compiler = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
    if compiler is None:
        pytest.skip("no C++ compiler")
    program = tmp_path / "linked"
    source = HERE / "clients" / "linked.cpp"
    command: list[str | Path] = [compiler, f"-I{folder}", "-o", program, source]
    subprocess.run([*command, f"-L{FOLDER}", "-lamdhip64"], check=True, timeout=60)
    return program
