# SPDX-License-Identifier: Apache-2.0
"""Known harnesses: a table, how a command is matched with it, and what of them is marked.

This module is on the path of every `krex run`, which reads no table unless the user has one.
"""

from __future__ import annotations

import os


def user_file() -> str:
    """Where a user's own presets are, if there are any."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "krex", "presets.toml")


def variables(extra: str | None) -> dict[str, str]:
    """What the environment of a command says of presets: nothing, if it has only the built-in ones.

    `extra` is a file with presets. Raises UsageError.
    """
    if not extra and not os.path.exists(user_file()):
        return {}
    from krex.presets import table

    return {"KREX_CALLS": ",".join(table.targets(table.load(extra)))}
