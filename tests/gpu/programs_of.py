# SPDX-License-Identifier: Apache-2.0
"""Where the programs are that sections run, and how they are run."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PROGRAMS = Path(__file__).with_name("programs")


def program(name: str) -> str:
    """The path of one."""
    return str(_PROGRAMS / name)


def python(path: str, *words: str) -> list[str]:
    """The command of a Python program."""
    return [sys.executable, path, *words]
