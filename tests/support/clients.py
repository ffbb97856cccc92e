# SPDX-License-Identifier: Apache-2.0
"""The Pythons that have real clients of the vendors' drivers (`make clients`), and PyTorch.

Of their own: some of them hook into the start of every interpreter of their environment.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
TORCH = ROOT / ".venv-torch" / "bin" / "python"
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
        _skip(*missing)
    return str(PYTHON)


def python_with_torch() -> str:
    """The one that has PyTorch's CPU build, in the same way."""
    if not TORCH.exists():
        _skip("torch")
    return str(TORCH)


def packages_with(*packages: str) -> str:
    """Where these are, for the PYTHONPATH of a Python of the same version, in the same way."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    words = [python_with(*packages), "-c", code]
    return subprocess.run(words, stdout=-1, text=True, check=True).stdout.strip()


def _skip(*missing: str) -> None:
    assert os.environ.get("KREX_TEST_CLIENTS") != "required", missing
    pytest.skip(f"not installed: {' '.join(missing)} (make clients torch)")
