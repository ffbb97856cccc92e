# SPDX-License-Identifier: Apache-2.0
"""`krex.region`: marks the timed phase. Standard library only; runs on CPython 3.8 and later."""

from __future__ import annotations

import ctypes
import functools

TYPE_CHECKING = False  # importing typing would cost every `krex run` a few milliseconds
if TYPE_CHECKING:
    from typing import Any


def _shim() -> Any:
    """The preloaded library's functions, or None: then every mark is a no-op."""
    try:
        shim = ctypes.CDLL(None)
        shim.krex_region_wait.argtypes = [ctypes.c_double]
        shim.krex_region_begin.argtypes = [ctypes.c_char_p]
        return shim
    except AttributeError:
        return None


class region:  # noqa: N801
    """``with krex.region("name"):`` or ``@krex.region("name")`` or ``@krex.region``.

    Inside, the device is this process's alone; entering waits for that, and Ctrl-C works while it
    waits. Re-entrant: only the outermost mark of a thread counts. Without KREX it does nothing.
    """

    def __init__(self, name: Any = "") -> None:
        self._function = name if callable(name) else None
        self._name = getattr(name, "__qualname__", name)
        if self._function:
            functools.update_wrapper(self, self._function)

    def __enter__(self) -> region:  # noqa: PYI034
        shim = _shim()
        if shim is None:
            return self
        try:
            if shim.krex_region_begin(self._name.encode()[:127]):
                while shim.krex_region_wait(0.05) == 1:
                    pass
        except BaseException:
            shim.krex_region_end()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        shim = _shim()
        if shim is not None:
            shim.krex_region_end()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is not None:
            with region(self._name):
                return self._function(*args, **kwargs)
        function = args[0]

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with region(self._name or function.__qualname__):
                return function(*args, **kwargs)

        return marked
