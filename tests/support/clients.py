# SPDX-License-Identifier: Apache-2.0
"""The Python that has real clients of the vendors' drivers, which `make clients` makes.

One of its own: some of them hook into the start of every interpreter of their environment.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / ".venv-clients" / "bin" / "python"
LIST = (
    "from importlib import metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
)


@functools.cache
def installed() -> frozenset[str]:
    """The names of its packages, in lower case; none, if there is no such Python."""
    if not PYTHON.exists():
        return frozenset()
    done = subprocess.run([PYTHON, "-c", LIST], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.lower().split())


def python_with(*packages: str) -> str:
    """That Python, or skip the test; where KREX_TEST_CLIENTS=required, fail it."""
    if missing := [name for name in packages if name not in installed()]:
        assert os.environ.get("KREX_TEST_CLIENTS") != "required", missing
        pytest.skip(f"not installed: {' '.join(missing)} (make clients)")
    return str(PYTHON)
