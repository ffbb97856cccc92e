# SPDX-License-Identifier: Apache-2.0
"""What a Python of a command does first: watch for the modules of functions that are to be marked.

Every one of them does so, and most have nothing to mark. So this is short, for it may have to be
compiled each time, and the rest is loaded when such a module is imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPAWN = "multiprocessing.spawn"


class Watch:
    """A finder of modules that only looks at names; `found.py` has the rest.

    A name is of a function to mark, or `hook:` and that of a function which takes the mark itself.
    Any part of a dotted name but the last may be the module's, so each of them is watched.
    """

    def __init__(self, names: "list[str]", chosen: "list[str]") -> None:
        self.chosen = chosen  # those that the user named
        self.marked = set()  # type: set[str]
        self.refused = {}  # type: dict[str, str]  # names, and why they cannot be marked
        self.targets = {}  # type: dict[str, list[str]]  # by the part that may be a module
        for name in names:
            part = name[5:] if name.startswith("hook:") else name
            while "." in part:
                part = part.rpartition(".")[0]
                self.targets.setdefault(part, []).append(name)
        if "__main__" in self.targets or "__mp_main__" in self.targets:
            self.targets.setdefault(_SPAWN, [])

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """The finder protocol: nothing, for all modules but the watched ones."""
        if name in self.targets:
            from .found import find

            return find(self, name, path, target)
        return None


def start() -> None:
    """Watch, from now on, for what KREX_REGION asks for."""
    region = os.environ.get("KREX_REGION") or "auto"
    if region == "auto":
        watch = Watch(known_functions(), [])
        if not watch.targets.keys().isdisjoint(sys.modules):
            from .found import mark_imported

            mark_imported(watch)
        sys.meta_path.insert(0, watch)
    elif region not in ("whole", "events", "none"):
        from .chosen import start_chosen

        start_chosen(region)


def known_functions() -> "list[str]":
    """Of known harnesses: KREX_CALLS, which says all if it is there, or those we come with."""
    said = os.environ.get("KREX_CALLS")
    if said:
        return said.split(",")
    from .known import CALLS

    return list(CALLS)
