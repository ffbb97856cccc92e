# SPDX-License-Identifier: Apache-2.0
"""`krex.region`: marks the timed phase. Standard library only; runs on CPython 3.8 and later."""

from __future__ import annotations

import functools

TYPE_CHECKING = False  # importing typing would cost every `krex run` a few milliseconds
if TYPE_CHECKING:
    from typing import Any

# The longest name that a message to the controller carries, in bytes.
_LONGEST_NAME = 127
# Ctrl-C is looked at this often while a region waits.
_WAIT_SLICE_S = 0.05
# Of inspect, which takes longer to import than everything here: generators, asynchronous ones too,
# and coroutines.
_GENERATOR_FLAGS = 0x20 | 0x200
_COROUTINE_FLAG = 0x80


def region(name: Any = "") -> Any:
    """``with krex.region("name"):`` or ``@krex.region("name")`` or ``@krex.region``.

    Inside, the device is this process's alone; entering waits for that, and Ctrl-C works while it
    waits. Without KREX it does nothing.

    Re-entrant: only the outermost mark of a thread counts, so tasks of one event loop that overlap
    are one region. Entering blocks the event loop; a decorated coroutine function is marked while
    it is awaited. A generator function cannot be decorated, for its caller's work between two
    items would be timed with it: use ``with`` in it, where no ``yield`` is.
    """
    if callable(name):
        return _Region(getattr(name, "__qualname__", ""))(name)
    return _Region(str(name))


class _Region:
    """One mark. It has no state but its name, so it may be used again, and in itself."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> _Region:  # noqa: PYI034
        shim = _shim()
        if shim is None:
            return self
        name = self._name.encode("utf-8", "replace")[:_LONGEST_NAME]
        depth = shim.krex_region_depth()
        try:
            if shim.krex_region_begin(name):
                while shim.krex_region_wait(_WAIT_SLICE_S) == 1:
                    pass
            return self
        except BaseException:
            # An interrupt may come before the mark has begun: then it must not end an outer one.
            if shim.krex_region_depth() > depth:
                shim.krex_region_end()
            raise

    def __exit__(self, *exc: object) -> None:
        shim = _shim()
        if shim is not None:
            shim.krex_region_end()

    def __call__(self, function: Any) -> Any:
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & _GENERATOR_FLAGS:
            raise TypeError(
                f"{function.__qualname__} is a generator function: use `with krex.region()` in it"
            )
        mark = self if self._name else _Region(getattr(function, "__qualname__", ""))

        async def marked_coroutine(*args: Any, **kwargs: Any) -> Any:
            with mark:
                return await function(*args, **kwargs)

        def marked(*args: Any, **kwargs: Any) -> Any:
            with mark:
                return function(*args, **kwargs)

        return functools.wraps(function)(marked_coroutine if flags & _COROUTINE_FLAG else marked)


_functions: list[Any] = []  # what _shim() found, once it has looked


def _shim() -> Any:
    """The preloaded library's functions, or None: then every mark is a no-op."""
    if not _functions:
        _functions.append(_find())
    return _functions[0]


def _find() -> Any:
    try:
        import ctypes  # not every interpreter has it

        shim = ctypes.CDLL(None)
        shim.krex_region_begin.argtypes = [ctypes.c_char_p]
        shim.krex_region_wait.argtypes = [ctypes.c_double]
        shim.krex_region_end.argtypes = []
        shim.krex_region_depth.argtypes = []
        return shim
    except Exception:
        return None
