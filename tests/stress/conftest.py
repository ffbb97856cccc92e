# SPDX-License-Identifier: Apache-2.0
"""A scene for each test: who dies in it, and when, is the test's to say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.command_line import Krex
from support.scene import Scene
from support.waiting import short_directory

from krex.protect.freezer import find_base


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Not started yet."""
    pytest.importorskip("pyopencl")
    if find_base() is None:
        pytest.skip("no writable cgroup v2 directory: nothing can be frozen")
    with short_directory() as directory:
        krex = Krex(directory)
        scene = Scene(krex)
        try:
            yield scene
        finally:
            scene.close()
            krex.close()
