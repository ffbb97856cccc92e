# SPDX-License-Identifier: Apache-2.0
"""The table of known harnesses: read, checked, extended by the user's.

`krex run` does not read the built-in one: `krex/marker/known.py` is made from it, and is what the
Pythons of a command read. `python -m krex.presets` makes it.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec
from msgspec import Struct

from krex.errors import UsageError
from krex.marker import spec
from krex.presets import user_file

BUILTIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin.toml")


class Preset(Struct, forbid_unknown_fields=True, kw_only=True):
    """One harness."""

    title: str
    why: str
    modules: list[str] = []  # recognised by any of them in an import
    programs: list[str] = []  # or by the name of the program or script; * stands for anything
    calls: list[str] = []  # the functions that are marked
    hooks: list[str] = []  # functions that take what is to be entered around each benchmark
    region: str = "auto"  # what to set KREX_REGION to
    status: Literal["ran here", "ran on a GPU", "contract only", "yours"] = "yours"
    checked: str = ""  # the version, or commit, whose source has these names
    notes: list[str] = []

    @property
    def targets(self) -> list[str]:
        """What the Pythons of a command watch for."""
        return [f"hook:{name}" for name in self.hooks] + self.calls


def load(extra: str | None = None) -> dict[str, Preset]:
    """The built-in table with the user's file over it, and `extra`. Raises UsageError."""
    presets = read(BUILTIN)
    if os.path.exists(user_file()):
        presets |= read(user_file())
    if extra:
        presets |= read(extra)
    return presets


def read(path: str) -> dict[str, Preset]:
    """The presets of one file. Raises UsageError, which says where it is wrong."""
    try:
        with open(path, "rb") as file:
            presets = msgspec.toml.decode(file.read(), type=dict[str, Preset])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "check the path") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{path}: {error}", "docs/harnesses.md has the keys") from None
    for name, preset in presets.items():
        wrong = _wrong(preset)
        if wrong:
            raise UsageError(f"{path}: [{name}]: {wrong}", "correct it")
    return presets


def targets(presets: dict[str, Preset]) -> list[str]:
    """All that is watched for, each once."""
    return list(dict.fromkeys(t for preset in presets.values() for t in preset.targets))


def _wrong(preset: Preset) -> str | None:
    for name in preset.calls + preset.hooks:
        if not spec.is_function_name(name):
            return f"{name!r} is not the dotted name of a function"
    if not preset.modules and not preset.programs:
        return "neither modules nor programs say what it is recognised by"
    return _wrong_region(preset.region)


def _wrong_region(region: str) -> str | None:
    try:
        spec.parse(region)
    except ValueError as error:
        return f"region: {error}"
    return None


def known_source(presets: dict[str, Preset]) -> str:
    """The text of `krex/marker/known.py`."""
    names: Any = "".join(f'    "{name}",\n' for name in targets(presets))
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        '"""Functions of known harnesses. Made from krex/presets/builtin.toml; do not edit."""\n'
        "\n"
        f"CALLS = (\n{names})\n"
    )
