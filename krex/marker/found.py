# SPDX-License-Identifier: Apache-2.0
"""A module with known functions is imported: they are marked before anybody else sees it."""

import sys

from . import targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .start import Watch

_SPAWN = "multiprocessing.spawn"


def find(watch: "Watch", name: str, path: "Any", target: "Any") -> "Any":
    """Let the finders behind the watch find a module, and hook the loader that they name."""
    finders = list(sys.meta_path)  # type: list[Any]
    for finder in finders[finders.index(watch) + 1 if watch in finders else 0 :]:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, path, target) if find_spec else None
        if spec is not None or find_spec is None:  # None: it is asked in the old way, without us
            _follow(watch, getattr(spec, "loader", None))
            return spec
    return None


def _follow(watch: "Watch", loader: "Any") -> None:
    """Have a loader tell us when it has run a module; one that several share does so for all."""
    execute = getattr(loader, "exec_module", None)
    if execute is None or "exec_module" in getattr(loader, "__dict__", ("exec_module",)):
        return  # followed already, or a class: those of built-in modules

    def exec_module(module: "Any") -> None:
        execute(module)
        imported(watch, module.__name__, module)

    try:
        loader.exec_module = exec_module
    except (AttributeError, TypeError):
        pass  # it cannot be followed; at the end, that is said of functions that were chosen


def mark_imported(watch: "Watch") -> None:
    """Mark what is there already."""
    for name in [name for name in watch.targets if name in sys.modules]:
        imported(watch, name, sys.modules[name])


def imported(watch: "Watch", name: str, module: "ModuleType") -> None:
    """Mark what `module` has of the names that begin with `name`. Nothing gets out of here."""
    for target in watch.targets.get(name, ()):
        _mark(watch, module, name, target)
    if name == _SPAWN:
        from .main_module import follow_spawn

        follow_spawn(module, watch)


def _mark(watch: "Watch", module: "ModuleType", prefix: str, target: str) -> None:
    kind, _, name = target.rpartition(":")
    act = targets.hook if kind else targets.mark
    try:
        if act(module, name[len(prefix) + 1 :], name):
            watch.marked.add(name)
    except Exception as why:  # CannotMark, or what a strange object does when it is looked at
        watch.refused[name] = str(why)
