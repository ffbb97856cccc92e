# SPDX-License-Identifier: Apache-2.0
"""A script without any package: copies, a kernel that computes, one that takes 3 ms, callbacks."""

import ctypes
import json
import sys
from pathlib import Path

hip = ctypes.CDLL("libamdhip64.so")
N = 10_000
SPIN_NS = 3_000_000
NOT_READY = 600
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def ok(result):
    assert result == 0, f"HIP error {result}"


def get(name, *arguments, kind=ctypes.c_void_p):
    given = kind()
    ok(getattr(hip, name)(ctypes.byref(given), *arguments))
    return given


def launch(kernel, blocks, stream, *arguments):
    pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    ok(hip.hipModuleLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, stream, pointers, None))


devices = get("hipGetDeviceCount", kind=ctypes.c_int).value
version = get("hipRuntimeGetVersion", kind=ctypes.c_int).value
module = get("hipModuleLoadData", Path(sys.argv[1]).read_bytes())
axpy = get("hipModuleGetFunction", module, b"krex_axpy_f32")
spin = get("hipModuleGetFunction", module, b"krex_spin")
stream = get("hipStreamCreate")
bytes_ = ctypes.c_size_t(4 * N)
x, y = (get("hipMalloc", bytes_) for _ in range(2))
host = (ctypes.c_float * N)(*range(N))
for address in (x, y):
    ok(hip.hipMemcpyAsync(address, host, bytes_, 1, stream))
before, after = (get("hipEventCreate") for _ in range(2))
launch(spin, 1, stream, ctypes.c_int64(SPIN_NS))
ok(hip.hipEventRecord(before, stream))
launch(spin, 1, stream, ctypes.c_int64(SPIN_NS))
ok(hip.hipEventRecord(after, stream))
ready_at_once = hip.hipEventQuery(after)
launch(axpy, (N + 255) // 256, stream, ctypes.c_int32(N), ctypes.c_float(2), x, y)
called = []
first = Callback(lambda *_: called.append(1))
second = HostFunction(lambda _: called.append(2))
ok(hip.hipStreamAddCallback(stream, first, None, 0))
ok(hip.hipLaunchHostFunc(stream, second, None))
ok(hip.hipStreamSynchronize(stream))
called.append(3)
ok(hip.hipMemcpy(host, y, bytes_, 2))
results = {
    "devices": devices,
    "version": version,
    "correct": list(host) == [3 * i for i in range(N)],
    "spin_ms": get("hipEventElapsedTime", before, after, kind=ctypes.c_float).value,
    "ready_at_once": ready_at_once,
    "called": called,
}
for address in (x, y):
    ok(hip.hipFree(address))
print(json.dumps(results))
