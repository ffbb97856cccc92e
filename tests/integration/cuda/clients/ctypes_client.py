# SPDX-License-Identifier: Apache-2.0
"""A script without any package: copies, a kernel that computes, one that takes 3 ms, callbacks."""

import ctypes
import json

from cu import Address, Float, Size, cu, event, function, get, launch, module, ok, stream

N = 100_000
SPIN_NS, AHEAD_NS = 3_000_000, 50_000_000

ok(cu.cuInit(0))
get("cuCtxCreate_v2", 0, 0)
loaded, on = module(), stream()
axpy, spin = (function(loaded, name) for name in ("krex_axpy_f32", "krex_spin"))
x = (Float * N)(*map(float, range(N)))
y = (Float * N)(*([1.0] * N))
size = Size(ctypes.sizeof(x))
on_device = [get("cuMemAlloc_v2", size, kind=Address) for _ in range(2)]
for address, source in zip(on_device, (x, y), strict=True):
    ok(cu.cuMemcpyHtoDAsync_v2(address, source, size, on))
arguments = (ctypes.c_uint32(N), Float(2), *on_device)
ok(launch(axpy, on, *arguments, blocks=(N + 31) // 32))
ok(cu.cuMemcpyDtoHAsync_v2(y, on_device[1], size, on))
ok(cu.cuStreamSynchronize(on))
correct = list(y) == [2 * i + 1 for i in range(N)]

before, after = event(), event()
ok(launch(spin, on, ctypes.c_uint64(AHEAD_NS)))  # so that what follows is there when it starts
ok(cu.cuEventRecord(before, on))
ok(launch(spin, on, ctypes.c_uint64(SPIN_NS)))
ok(cu.cuEventRecord(after, on))
ready_at_once = cu.cuEventQuery(after)
ok(cu.cuEventSynchronize(after))

called = []
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
for number in (1, 2, 3):
    ok(cu.cuLaunchHostFunc(on, callback, ctypes.c_void_p(number)))
ok(cu.cuCtxSynchronize())

results = {
    "devices": get("cuDeviceGetCount", kind=ctypes.c_int).value,
    "version": get("cuDriverGetVersion", kind=ctypes.c_int).value,
    "correct": correct,
    "ready_at_once": ready_at_once,
    "spin_ms": get("cuEventElapsedTime", before, after, kind=Float).value,
    "called": called,
}
print(json.dumps(results))
