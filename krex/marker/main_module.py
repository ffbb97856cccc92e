# SPDX-License-Identifier: Apache-2.0
"""Functions of the main module, which nobody imports.

In a child that multiprocessing spawned, the main module is loaded as `__mp_main__` by a function
that we follow. In the first process the interpreter runs it, and CPython 3.12 can be asked to tell
of each call that its top level makes: by then the functions above it are there to be marked.
"""

import sys
from types import FunctionType

from . import found, trampoline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from .start import Watch

CAN_WATCH = sys.version_info >= (3, 12)
_LOADERS = ("_fixup_main_from_name", "_fixup_main_from_path")  # of multiprocessing.spawn
_TOOLS = (4, 3)  # numbers that sys.monitoring has given to nobody


class AfterMain:
    """Entered around a function that loads `__mp_main__`; marks what it has then."""

    __slots__ = ("_watch",)
    marks_functions = True  # see trampoline.is_marked

    def __init__(self, watch: "Watch") -> None:
        self._watch = watch

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        module = sys.modules.get("__mp_main__")
        if module is not None:
            found.imported(self._watch, "__mp_main__", module)
            mark_main(self._watch, module)


def follow_spawn(module: "Any", watch: "Watch") -> None:
    """Mark the main module of a child once `module`, which is multiprocessing.spawn, loads it."""
    for name in _LOADERS:
        function = getattr(module, name, None)
        if isinstance(function, FunctionType):
            trampoline.mark(function, AfterMain(watch))


def mark_main(watch: "Watch", module: "Any") -> None:
    """Mark what the main module has by now, named `__main__.f`, or `m.f` if it runs by `-m m`."""
    found.imported(watch, "__main__", module)
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        found.imported(watch, spec.name, module)


def watch_main(watch: "Watch") -> None:
    """Mark functions of the main module before its top level calls anything; CPython 3.12 on."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        return
    events = monitoring.events
    monitoring.use_tool_id(tool, "krex")

    def started(code: "CodeType", _: int) -> "Any":
        frame = sys._getframe(1)  # noqa: SLF001 - the one that starts
        if code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            monitoring.set_events(tool, 0)
            monitoring.set_local_events(tool, code, events.CALL)
        return monitoring.DISABLE

    def called(*_: "Any") -> "Any":
        mark_main(watch, sys.modules["__main__"])
        return monitoring.DISABLE  # once for each call that is written there: loops are not slowed

    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.CALL, called)
    monitoring.set_events(tool, events.PY_START)
