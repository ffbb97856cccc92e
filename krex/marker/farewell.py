# SPDX-License-Identifier: Apache-2.0
"""What is said at the end of an interpreter: which functions of the user's choice are not marked.

A module that was not imported is not mentioned: another process of the command may well have it,
and `krex run` knows at its end which functions never ran.
"""

import sys

from . import targets
from .main_module import CAN_WATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .start import Watch


def complain(watch: "Watch") -> None:
    """Write a line for each function that was named wrongly. To be called at exit."""
    if getattr(sys.modules.get("__main__"), "__name__", "") == "__mp_main__":
        return  # a spawned child's parent says it
    for name in watch.chosen:
        why = None if name in watch.marked else _why(watch, name)
        if why and sys.stderr is not None:
            try:
                sys.stderr.write(f"krex: KREX_REGION: call:{name} is not marked: {why}\n")
            except (OSError, ValueError):
                pass  # nobody reads it


def _why(watch: "Watch", name: str) -> "str | None":
    """What is wrong with a name; None: nothing, as far as this process can tell."""
    if name in watch.refused:
        return watch.refused[name]
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:count]))
        if module is not None:
            return _about(module, parts[count:])
    return None


def _about(module: "object", rest: "list[str]") -> "str | None":
    """What is wrong, where `module` is the longest part of the name that was imported."""
    name = getattr(module, "__name__", "")
    if targets.has(module, rest):
        if name != "__main__" or CAN_WATCH:
            return f"it came to be after {name} was imported"
        version = ".".join(map(str, sys.version_info[:2]))
        return f"functions of a main module are, from CPython 3.12 on; this is {version}"
    if name == "__main__" or (len(rest) > 1 and hasattr(module, "__path__")):
        return None  # every process has a main module; a package, modules that were not needed
    return "{} has no {}".format(name, ".".join(rest))
