# SPDX-License-Identifier: Apache-2.0
"""Whether the command is a Python, and one that was told not to look at what we say."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WITH_VALUE = "WX"  # options with a value, in the same word or the next
_ENDS = "cm"  # options that end the options
_BLIND = {
    "I": "ignores PYTHONPATH",
    "E": "ignores PYTHONPATH",
    "S": "runs no sitecustomize",
}


class Python:
    """The command line of a Python: what it runs, and the option that hides us from it, if any."""

    __slots__ = ("blind", "module", "script")

    def __init__(self, words: Sequence[str]) -> None:
        self.blind: str | None = None
        self.module: str | None = None
        self.script: str | None = None
        rest = list(words)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if self._take(word, rest):
                return
        if rest and rest[0] != "-":
            self.script = rest[0]

    def _take(self, word: str, rest: list[str]) -> bool:
        """Read one word of options; whether it ends them."""
        if word.startswith("--"):
            if word == "--check-hash-based-pycs" and rest:
                rest.pop(0)
            return False
        for at, letter in enumerate(word[1:], 1):
            if letter in _BLIND and self.blind is None:
                self.blind = f"python -{letter} {_BLIND[letter]}"
            if letter in _WITH_VALUE or letter in _ENDS:
                value = word[at + 1 :] or (rest.pop(0) if rest else "")
                if letter == "m":
                    self.module = value
                return letter in _ENDS
        return False


def of(path: str, words: Sequence[str]) -> Python | None:
    """The Python that `path`, a program or a script, is run by with `words`; None if it is none."""
    if _is_python(path):
        return Python(words[1:])
    line = _first_line(path)
    if not line.startswith(b"#!"):
        return None
    asked = os.fsdecode(line[2:]).split()
    if asked and os.path.basename(asked[0]) == "env":
        asked = [word for word in asked[1:] if word != "-S" and "=" not in word]
    if not asked or not _is_python(asked[0]):
        return None
    return Python([*asked[1:], path, *words[1:]])


def _is_python(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith(("python", "pypy")) and not name[4:].strip("on0123456789.t")


def _first_line(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(256).partition(b"\n")[0]
    except OSError:
        return b""
