# SPDX-License-Identifier: Apache-2.0
"""The driver by ctypes."""

import ctypes
import sys

from gpu.driver_api import Driver

import krex

N = 4096

driver = Driver()
axpy, stream = driver.function("krex_axpy_f32_check"), driver.stream()
x, y = driver.allocate(4 * N), driver.allocate(4 * N)
size = ctypes.c_size_t(4 * N)
ramp = (ctypes.c_float * N)(*range(N))
driver.call("cuMemcpyHtoD_v2", x, ramp, size)
driver.call("cuMemsetD32_v2", y, ctypes.c_uint32(0), ctypes.c_size_t(N))
with krex.region("ctypes"):
    arguments = [ctypes.c_uint32(N), ctypes.c_float(0.5), x, y]
    for _ in range(4):
        driver.launch(axpy, stream, arguments, blocks=N // 256, threads=256)
    driver.call("cuStreamSynchronize", stream)
found = (ctypes.c_float * N)()
driver.call("cuMemcpyDtoH_v2", found, y, size)
if list(found) != [2.0 * i for i in range(N)]:
    sys.exit("the result is wrong")
