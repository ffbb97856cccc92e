# SPDX-License-Identifier: Apache-2.0
"""hip-python, which finds the runtime by its name without a version."""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
from hip import hip

N = 1 << 16


def checked(result):
    """What a call returns beside its status. Raises RuntimeError: it failed."""
    status, *values = result
    if status != hip.hipError_t.hipSuccess:
        raise RuntimeError(status)
    return values[0] if len(values) == 1 else values


properties = checked(hip.hipGetDeviceProperties(0))
module = checked(hip.hipModuleLoadData(Path(sys.argv[1]).read_bytes()))
kernel = checked(hip.hipModuleGetFunction(module, b"krex_axpy_f32"))
stream = checked(hip.hipStreamCreate())
x = np.arange(N, dtype=np.float32)
y = np.ones_like(x)
on_device = [checked(hip.hipMalloc(x.nbytes)) for _ in range(2)]
for address, source in zip(on_device, (x, y), strict=True):
    kind = hip.hipMemcpyKind.hipMemcpyHostToDevice
    checked(hip.hipMemcpyAsync(address, source, source.nbytes, kind, stream))
before, after = (checked(hip.hipEventCreate()) for _ in range(2))
checked(hip.hipEventRecord(before, stream))
arguments = (ctypes.c_int(N), ctypes.c_float(2), *on_device)
checked(
    hip.hipModuleLaunchKernel(
        kernel,
        gridDimX=N // 256,
        gridDimY=1,
        gridDimZ=1,
        blockDimX=256,
        blockDimY=1,
        blockDimZ=1,
        sharedMemBytes=0,
        stream=stream,
        kernelParams=None,
        extra=arguments,
    )
)
checked(hip.hipEventRecord(after, stream))
kind = hip.hipMemcpyKind.hipMemcpyDeviceToHost
checked(hip.hipMemcpyAsync(y, on_device[1], y.nbytes, kind, stream))
checked(hip.hipStreamSynchronize(stream))
results = {
    "correct": bool(np.array_equal(y, 2 * x + 1)),
    "ms": checked(hip.hipEventElapsedTime(before, after)),
    "architecture": properties.gcnArchName,
}
print(json.dumps(results))
