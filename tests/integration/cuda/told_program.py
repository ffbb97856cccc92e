# SPDX-License-Identifier: Apache-2.0
"""Does what it is told, a word a line, and says what the driver returned and when it did.

The driver is that of KREX_TEST_VENDOR: cuda, or hip.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable

import krex

RELAXED = 2  # else nothing may be allocated meanwhile
SIZE = ctypes.c_size_t(1 << 16)

Handle, Number = ctypes.c_void_p, ctypes.c_int
device, context, stream = Number(), Handle(), Handle()
memory, more, graph = ctypes.c_uint64(), ctypes.c_uint64(), Handle()
to = ctypes.byref
region = krex.region("told")


def cuda_words(cuda: ctypes.CDLL) -> dict[str, Callable[[], int]]:
    return {
        "init": lambda: cuda.cuInit(0) or cuda.cuDeviceGet(to(device), 0),
        # And what the other words need.
        "context": lambda: max(
            cuda.cuCtxCreate_v2(to(context), 0, device),
            cuda.cuStreamCreate(to(stream), 1),
            cuda.cuMemAlloc_v2(to(memory), SIZE),
        ),
        "submit": lambda: cuda.cuMemsetD8Async(memory, 1, SIZE, stream),
        "wait": cuda.cuCtxSynchronize,
        "begin": lambda: cuda.cuStreamBeginCapture_v2(stream, RELAXED),
        "end": lambda: cuda.cuStreamEndCapture(stream, to(graph)),
        "allocate": lambda: cuda.cuMemAlloc_v2(to(more), SIZE),
    }


def hip_words(hip: ctypes.CDLL) -> dict[str, Callable[[], int]]:
    return {
        "init": lambda: hip.hipInit(0),
        # There are none: it is the first call that touches the device.
        "context": lambda: max(
            hip.hipMalloc(to(memory), SIZE), hip.hipStreamCreateWithFlags(to(stream), 1)
        ),
        "submit": lambda: hip.hipMemsetAsync(memory, 1, SIZE, stream),
        "wait": hip.hipDeviceSynchronize,
        "begin": lambda: hip.hipStreamBeginCapture(stream, RELAXED),
        "end": lambda: hip.hipStreamEndCapture(stream, to(graph)),
        "allocate": lambda: hip.hipMalloc(to(more), SIZE),
    }


if os.environ.get("KREX_TEST_VENDOR") == "hip":
    words = hip_words(ctypes.CDLL("libamdhip64.so"))
else:
    words = cuda_words(ctypes.CDLL("libcuda.so.1"))
words["enter"] = lambda: region.__enter__() and 0
words["leave"] = lambda: region.__exit__(None, None, None) and 0

for line in sys.stdin:
    print(words[line.strip()]() or 0, time.monotonic_ns(), flush=True)
