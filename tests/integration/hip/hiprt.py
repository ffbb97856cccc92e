# SPDX-License-Identifier: Apache-2.0
"""HIP by ctypes, for programs of the tests: `hip.hipInit(0)` gives the result's number.

A program has scenarios, and `main` runs the one that the command line names, with the file of the
kernels. It finds the runtime as any program does.
"""

import ctypes
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

OK = 0
INVALID_VALUE, INVALID_CONFIGURATION, INVALID_DIRECTION, INVALID_FUNCTION = 1, 9, 21, 98
INVALID_DEVICE, INVALID_IMAGE, NO_BINARY, INVALID_HANDLE = 101, 200, 209, 400
NOT_FOUND, NOT_READY, LAUNCH_FAILURE, NOT_SUPPORTED = 500, 600, 719, 801
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT = range(900, 907)
NON_BLOCKING = 1
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2

hip = ctypes.CDLL("libamdhip64.so")
Handle, Size, Float, Int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float, ctypes.c_int
hip.hipGetErrorName.restype = hip.hipGetErrorString.restype = ctypes.c_char_p
hip.hipMemcpy.argtypes = (Handle, Handle, Size, Int)
hip.hipMemcpyAsync.argtypes = (Handle, Handle, Size, Int, Handle)
hip.hipMemset.argtypes = (Handle, Int, Size)
hip.hipModuleLaunchKernel.argtypes = (Handle, *[ctypes.c_uint] * 7, Handle, Handle, Handle)


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def ok(result: int) -> None:
    """Require success."""
    assert result == OK, f"HIP error {result}: {hip.hipGetErrorName(result).decode()}"


def get(name: str, *arguments: Any, kind: Any = Handle) -> Any:
    """Call a function that gives something by its first parameter; what it gave."""
    given = kind()
    ok(getattr(hip, name)(ctypes.byref(given), *arguments))
    return given


def stream(flags: int = NON_BLOCKING) -> Any:
    return get("hipStreamCreateWithFlags", flags)


def event() -> Any:
    return get("hipEventCreate")


def code() -> bytes:
    """The file of the kernels."""
    return Path(sys.argv[2]).read_bytes()


def module(image: bytes | None = None) -> Any:
    return get("hipModuleLoadData", code() if image is None else image)


def function(of: Any, name: str) -> Any:
    return get("hipModuleGetFunction", of, name.encode())


def pointers(arguments: tuple[Any, ...]) -> Any:
    """What a launch takes as kernelParams. It keeps them."""
    made = (ctypes.c_void_p * (len(arguments) + 1))(*map(ctypes.addressof, arguments))
    made.arguments = arguments  # type: ignore[attr-defined]
    return made


def launch(kernel: Any, on: Any, *arguments: Any, blocks: int = 1, threads: int = 64) -> int:
    """Launch with ctypes values as parameters; the result."""
    result: int = hip.hipModuleLaunchKernel(
        kernel, blocks, 1, 1, threads, 1, 1, 0, on, pointers(arguments), None
    )
    return result


class Floats:
    """Numbers in the device's memory."""

    def __init__(self, *values: float) -> None:
        self.count = ctypes.c_int32(len(values))
        self.bytes = Size(4 * len(values))
        self.at = get("hipMalloc", self.bytes)
        ok(hip.hipMemcpy(self.at, (Float * len(values))(*values), self.bytes, 1))

    def read(self) -> list[float]:
        to = (Float * self.count.value)()
        ok(hip.hipMemcpy(to, self.at, self.bytes, 2))
        return list(to)


def in_thread(call: Callable[[], Any]) -> Any:
    """Call it in another thread; what it returned."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


_scenarios: dict[str, Callable[[], None]] = {}


def scenario(run: Callable[[], None]) -> Callable[[], None]:
    """Mark a function that `main` can run."""
    _scenarios[run.__name__] = run
    return run


def main() -> None:
    """Run the scenario that the command line names; prints null when all was as it should be."""
    _scenarios[sys.argv[1]]()
    print("null")
