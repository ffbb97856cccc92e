# SPDX-License-Identifier: Apache-2.0
"""The driver API by ctypes, for programs of the tests: `cu.cuInit(0)` gives the result's number.

A program has scenarios, and `main` runs the one that the command line names, in a context of its
own. It finds the driver as any program does.
"""

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

OK = 0
INVALID_VALUE, INVALID_IMAGE, NOT_SUPPORTED = 1, 200, 801
INVALID_PTX, FILE_NOT_FOUND, INVALID_HANDLE, ILLEGAL_STATE = 218, 301, 400, 401
NOT_FOUND, NOT_READY, ILLEGAL_ADDRESS = 500, 600, 700
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT = range(900, 907)
CAPTURED_EVENT, WRONG_THREAD, UPDATE_FAILURE = 907, 908, 910

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALID = 0, 1, 2
NON_BLOCKING = 1

PTX = b""".version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .entry nothing() { ret; }
.visible .entry krex_spin(.param .u64 ns) { ret; }
.visible .entry krex_wait_flag(.param .u64 flag) { ret; }
.visible .entry krex_fill_f32(.param .u64 to, .param .f32 value, .param .u32 n) { ret; }
.visible .entry krex_axpy_f32(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) { ret; }
.visible .entry krex_copy_f32(.param .u64 to, .param .u64 from, .param .u32 n) { ret; }
.visible .entry krex_add_f32(.param .u64 x, .param .u64 y, .param .u64 to, .param .u32 n) { ret; }
.visible .entry krex_sum_f32(.param .u64 from, .param .u64 to, .param .u32 n) { ret; }
.visible .entry krex_scale_f32(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
.visible .entry krex_transpose_f32(.param .u64 to, .param .u64 from, .param .u32 rows,
    .param .u32 columns) { ret; }
.visible .entry krex_gemm_f32(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m,
    .param .u32 n, .param .u32 k) { ret; }
"""

cu = ctypes.CDLL("libcuda.so.1")
Handle, Address, Size, Float = (
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_size_t,
    ctypes.c_float,
)


def ok(result: int) -> None:
    """Require success."""
    assert result == OK, f"CUDA error {result}"


def get(name: str, *arguments: Any, kind: Any = Handle) -> Any:
    """Call a function that gives something by its first parameter; what it gave."""
    given = kind()
    ok(getattr(cu, name)(ctypes.byref(given), *arguments))
    return given


def stream(flags: int = NON_BLOCKING) -> Any:
    return get("cuStreamCreate", flags)


def event(flags: int = 0) -> Any:
    return get("cuEventCreate", flags)


def module(image: bytes = PTX) -> Any:
    return get("cuModuleLoadData", image)


def function(of: Any, name: str) -> Any:
    return get("cuModuleGetFunction", of, name.encode())


def pointers(arguments: tuple[Any, ...]) -> Any:
    """What a launch takes as kernelParams."""
    return (ctypes.c_void_p * (len(arguments) + 1))(*map(ctypes.addressof, arguments))


def launch(kernel: Any, on: Any, *arguments: Any, blocks: int = 1) -> int:
    """Launch with ctypes values as parameters; the result."""
    result: int = cu.cuLaunchKernel(
        kernel, blocks, 1, 1, 32, 1, 1, 0, on, pointers(arguments), None
    )
    return result


class Floats:
    """Numbers in the device's memory."""

    def __init__(self, *values: float) -> None:
        self.count = ctypes.c_int32(len(values))
        self.bytes = Size(4 * len(values))
        self.at = get("cuMemAlloc_v2", self.bytes, kind=Address)
        ok(cu.cuMemcpyHtoD_v2(self.at, (Float * len(values))(*values), self.bytes))

    def read(self) -> list[float]:
        to = (Float * self.count.value)()
        ok(cu.cuMemcpyDtoH_v2(to, self.at, self.bytes))
        return list(to)


def in_thread(call: Callable[[], Any]) -> Any:
    """Call it in another thread, in the same context; what it returned."""
    context, results = get("cuCtxGetCurrent"), []

    def run() -> None:
        ok(cu.cuCtxSetCurrent(context))
        results.append(call())

    thread = threading.Thread(target=run)
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
    ok(cu.cuInit(0))
    get("cuCtxCreate_v2", 0, 0)
    _scenarios[sys.argv[1]]()
    print("null")
