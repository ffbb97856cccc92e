# SPDX-License-Identifier: Apache-2.0
"""What every test runs under: a clean environment, and no GPU tests where there is no GPU.

Timeout, markers and warnings are in pyproject.toml.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GPU_NODES = ("/dev/nvidia0", "/dev/kfd")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def library(root) -> Path:
    """The preload library as it was built in place."""
    path = root / "krex" / "lib" / "libkrex.so"
    assert path.exists(), "not built: run `make build`"
    return path


@pytest.fixture(scope="session", autouse=True)
def _clean_environment():
    # Whoever runs the tests may be inside `krex run`, or have the shim preloaded.
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith("KREX_") and not name.startswith("KREX_TEST_"):
            patch.delenv(name)
    patch.delenv("LD_PRELOAD", raising=False)
    yield
    patch.undo()


def pytest_collection_modifyitems(items):
    if any(map(os.path.exists, GPU_NODES)):
        return
    skip = pytest.mark.skip(reason=f"no GPU: none of {', '.join(GPU_NODES)}")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
