# SPDX-License-Identifier: Apache-2.0
"""A private controller for each test, and commands beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import short_directory


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory with a short name."""
    with short_directory() as directory:
        yield directory


@pytest.fixture
def krex(place: Path) -> Iterator[Krex]:
    """The command line beside a controller that runs already, and a runtime with real kernels."""
    pytest.importorskip("pyopencl")
    runner = Krex(place)
    try:
        runner.start_controller()
        yield runner
    finally:
        runner.close()


@pytest.fixture
def cli(place: Path) -> Iterator[Krex]:
    """The command line where no controller runs yet."""
    runner = Krex(place)
    try:
        yield runner
    finally:
        runner.close()
