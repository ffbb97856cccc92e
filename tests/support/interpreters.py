# SPDX-License-Identifier: Apache-2.0
"""The interpreters of tenants that this machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


def interpreter(version: str) -> list[str]:
    """A CPython of that version, or skip the test."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    name = f"python{version}"
    for path in [*pyenv.glob(f"versions/{version}.*/bin/{name}"), Path("/usr/bin", name)]:
        if path.exists():
            return [str(path)]
    pytest.skip(f"there is no {name} here")
