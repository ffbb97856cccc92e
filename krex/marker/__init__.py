# SPDX-License-Identifier: Apache-2.0
"""`krex.region`: marks the timed phase. Standard library only; runs on CPython 3.8 and later."""

from __future__ import annotations

import functools

from . import shim

TYPE_CHECKING = False  # importing typing would cost every `krex run` a few milliseconds
if TYPE_CHECKING:
    from typing import Any

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
        shim.enter(self._name)
        return self

    def __exit__(self, *exc: object) -> None:
        shim.leave()

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


# Who imports this may mark by itself: what it times is no region of its own accord any more.
shim.expect()
