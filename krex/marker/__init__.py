# SPDX-License-Identifier: Apache-2.0
"""`krex.region`: marks the timed phase. Standard library only; runs on CPython 3.8 and later."""

import ctypes
import functools


def _shim():
    """The preloaded library's functions, or None: then every mark is a no-op."""
    try:
        shim = ctypes.CDLL(None)
        shim.krex_region_wait.argtypes = [ctypes.c_double]
        shim.krex_region_begin.argtypes = [ctypes.c_char_p]
        return shim
    except AttributeError:
        return None


class region:
    """``with krex.region("name"):`` or ``@krex.region("name")`` or ``@krex.region``.

    Inside, the device is this process's alone; entering waits for that, and Ctrl-C works while it
    waits. Re-entrant: only the outermost mark of a thread counts. Without KREX it does nothing.
    """

    def __init__(self, name=""):
        self._function = name if callable(name) else None
        self._name = getattr(name, "__qualname__", name)
        if self._function:
            functools.update_wrapper(self, self._function)

    def __enter__(self):
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

    def __exit__(self, *exc):
        shim = _shim()
        if shim is not None:
            shim.krex_region_end()

    def __call__(self, *args, **kwargs):
        if self._function is not None:
            with region(self._name):
                return self._function(*args, **kwargs)
        function = args[0]

        @functools.wraps(function)
        def marked(*args, **kwargs):
            with region(self._name or function.__qualname__):
                return function(*args, **kwargs)

        return marked
