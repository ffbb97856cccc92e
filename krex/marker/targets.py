# SPDX-License-Identifier: Apache-2.0
"""From a dotted name in a module to the function that it means, and that one marked."""

import types

from . import trampoline
from .automatic import Automatic, in_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MISSING = object()
_WRAPPED = {"__module__", "__name__", "__qualname__", "__doc__"}


class CannotMark(Exception):
    """There is something of that name; the text says what, and what to name instead."""


def mark(module: types.ModuleType, qualname: str, name: str) -> bool:
    """Mark the function `qualname` of a module; False: there is nothing of that name (yet).

    `name` is what the region will be called. Raises CannotMark.
    """
    holder, value = _find(module, qualname.split("."))
    if value is _MISSING:
        return False
    if isinstance(value, types.FunctionType) and hasattr(value, "marks_functions"):
        return True  # it stands for one in C already
    function = _function(value)
    if function is not None:
        try:
            trampoline.mark(function, in_c(name))
        except (SyntaxError, ValueError) as error:  # its code was not made by the compiler
            raise CannotMark(f"its code cannot be replaced: {error}") from None
    elif isinstance(value, types.BuiltinFunctionType) and holder is module:
        setattr(module, qualname, _wrapper(value, name))
    else:
        raise CannotMark(_why_not(value))
    return True


def hook(module: types.ModuleType, qualname: str, _: str) -> bool:
    """Call a function that takes a factory of context managers to enter around each benchmark.

    As torch's set_gpu_benchmark_lock_context: it returns the one that was set before, which goes
    back if there was one. The region has the module's name. False: there is no such function.
    """
    _, setter = _find(module, qualname.split("."))
    if setter is _MISSING:
        return False
    before = setter(lambda: Automatic(module.__name__))
    if before is not None:
        setter(before)
    return True


def has(module: "Any", parts: "list[str]") -> bool:
    """Whether a module has something of that name."""
    return _find(module, parts)[1] is not _MISSING


def _find(owner: "Any", parts: "list[str]") -> "tuple[Any, Any]":
    """What the last part means, and in what, without running properties or lazy imports."""
    value = owner
    for part in parts:
        owner = value
        spaces = owner.__mro__ if isinstance(owner, type) else (owner,)
        found = (vars(s)[part] for s in spaces if part in getattr(s, "__dict__", ()))
        value = next(found, _MISSING)
        if value is _MISSING:
            break
    return owner, value


def _function(value: "Any") -> "types.FunctionType | None":
    """The Python function behind a method, a property, a cache, a context manager."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    inner = getattr(value, "__wrapped__", None)
    if not isinstance(value, types.FunctionType):
        value = inner  # functools.lru_cache and the like
    elif isinstance(inner, types.FunctionType) and value.__code__.co_filename == _contextlib_file():
        value = inner  # the call only makes a context manager; the generator is what runs
    return value if isinstance(value, types.FunctionType) else None


def _contextlib_file() -> str:
    import contextlib

    return contextlib.contextmanager.__code__.co_filename


def _wrapper(function: "Any", name: str) -> "Any":
    """Something to put in the place of a function in C."""
    manager = in_c(name)

    def marked(*args: "Any", **kwargs: "Any") -> "Any":
        with manager:
            return function(*args, **kwargs)

    for attribute in _WRAPPED:
        setattr(marked, attribute, getattr(function, attribute, None))
    marked.__wrapped__ = function  # type: ignore[attr-defined]
    marked.marks_functions = True  # type: ignore[attr-defined]
    return marked


def _why_not(value: "Any") -> str:
    if isinstance(value, type):
        return "it is a class; name a method of it, as in NAME.run"
    if isinstance(value, types.ModuleType):
        return "it is a module; name a function of it"
    if callable(value):
        return "it is not a Python function; name the one in Python that calls it"
    return "it cannot be called"
