# SPDX-License-Identifier: Apache-2.0
"""KREX and what it imports: from wheels, without installing them, or as the interpreter has it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path


def unpack(wheels: Path | None, scratch: Path) -> Path | None:
    """Put all wheels of a folder in one that PYTHONPATH can name; None: no folder was given.

    A wheel is a zip file of what gets imported. One that does not fit this interpreter, or machine,
    is found out by `lacking`.
    """
    if wheels is None:
        return None
    site = scratch / "site"
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return site


def lacking(environment: Mapping[str, str], folder: str) -> str | None:
    """What to say if KREX cannot be used in that environment and folder; None: it can."""
    code = "import click, msgspec, krex.native, krex.paths; krex.paths.library_path()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if not done.returncode:
        return None
    said = done.stderr.strip().splitlines()
    return (
        f"KREX cannot be used by {sys.executable} ({said[-1] if said else done.returncode}): run "
        "`make gpu-check-bundle` where pip has a network, take build/gpu-bundle along, and run "
        "this with --wheels build/gpu-bundle"
    )
