# SPDX-License-Identifier: Apache-2.0
"""The preloaded library's marks. Where it is not loaded, every one of these does nothing."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The longest name that a message to the controller carries, in bytes.
_LONGEST_NAME = 127
# Ctrl-C is looked at this often while a region waits.
_WAIT_SLICE_S = 0.05

_functions = []  # type: list[Any]  # what shim() found, once it has looked


def enter(name: str) -> None:
    """Begin an explicit mark and wait for the device, interruptibly."""
    library = shim()
    if library is None:
        return
    depth = library.krex_region_depth()
    try:
        if library.krex_region_begin(_encoded(name)):
            while library.krex_region_wait(_WAIT_SLICE_S) == 1:
                pass
    except BaseException:
        # An interrupt may come before the mark has begun: then it must not end an outer one.
        if library.krex_region_depth() > depth:
            library.krex_region_end()
        raise


def leave() -> None:
    """End the mark that `enter` began."""
    library = shim()
    if library is not None:
        library.krex_region_end()


def expect() -> None:
    """The program imports krex: its timed events are not taken for what it wants marked."""
    library = shim() if "libkrex" in os.environ.get("LD_PRELOAD", "") else None
    tell = getattr(library, "krex_region_expect", None)  # an older one has none
    if tell is not None:
        tell()


def arm(name: str) -> None:
    """Begin an automatic mark: its region starts when the timing does, in a call to the driver."""
    library = shim()
    if library is not None:
        library.krex_region_arm(_encoded(name))


def disarm() -> None:
    """End the mark that `arm` began."""
    library = shim()
    if library is not None:
        library.krex_region_disarm()


def arming(name: str) -> "Any":
    """`arm` with its name and `disarm`, as functions in C that a `with` can call; or None."""
    library = shim()
    if library is None:
        return None
    import ctypes
    import functools

    leave = library["krex_region_disarm"]  # an object of its own
    leave.argtypes = [ctypes.py_object] * 3  # those of an __exit__; the callee looks at none
    leave.restype = None
    return functools.partial(library.krex_region_arm, _encoded(name)), leave


def shim() -> "Any":
    """The preloaded library's functions, or None."""
    if not _functions:
        _functions.append(_find())
    return _functions[0]


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "replace")[:_LONGEST_NAME]


def _find() -> "Any":
    try:
        import ctypes  # not every interpreter has it

        library = ctypes.CDLL(None)
        library.krex_region_begin.argtypes = [ctypes.c_char_p]
        library.krex_region_wait.argtypes = [ctypes.c_double]
        library.krex_region_end.argtypes = []
        library.krex_region_arm.argtypes = [ctypes.c_char_p]
        library.krex_region_disarm.argtypes = []
        library.krex_region_depth.argtypes = []
        return library
    except Exception:
        return None
