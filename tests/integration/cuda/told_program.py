# SPDX-License-Identifier: Apache-2.0
"""Does what it is told, a word a line, and says what the driver returned and when it did."""

from __future__ import annotations

import ctypes
import sys
import time

import krex

RELAXED = 2  # else nothing may be allocated meanwhile
SIZE = ctypes.c_size_t(1 << 16)

cuda = ctypes.CDLL("libcuda.so.1")
device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
memory, more, graph = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
region = krex.region("told")


def make_context() -> int:
    """And what the other words need."""
    results = (
        cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
        cuda.cuStreamCreate(ctypes.byref(stream), 1),
        cuda.cuMemAlloc_v2(ctypes.byref(memory), SIZE),
    )
    return max(results)


WORDS = {
    "init": lambda: cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0),
    "context": make_context,
    "submit": lambda: cuda.cuMemsetD8Async(memory, 1, SIZE, stream),
    "begin": lambda: cuda.cuStreamBeginCapture_v2(stream, RELAXED),
    "end": lambda: cuda.cuStreamEndCapture(stream, ctypes.byref(graph)),
    "allocate": lambda: cuda.cuMemAlloc_v2(ctypes.byref(more), SIZE),
    "enter": lambda: region.__enter__() and 0,
    "leave": lambda: region.__exit__(None, None, None) and 0,
}

for line in sys.stdin:
    print(WORDS[line.strip()]() or 0, time.monotonic_ns(), flush=True)
