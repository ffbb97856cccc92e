# SPDX-License-Identifier: Apache-2.0
"""Captures again and again, each open for 50 ms, and replays each; ends at a line on stdin.

Says "ready" first, and at the end, as JSON, how many captures there were and how many were whole.
"""

import ctypes
import json
import select
import sys
import time

from gpu.driver_api import THREAD_LOCAL, Driver

OPEN_S = 0.05
N = 1024


class Capturing:
    """One stream, and a kernel whose result shows how often it ran."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.stream = self.driver.stream()
        self.axpy = self.driver.function("krex_axpy_f32_check")
        self.x, self.y = self.driver.allocate(4 * N), self.driver.allocate(4 * N)
        one = ctypes.c_uint32(0x3F800000)
        self.driver.call("cuMemsetD32_v2", self.x, one, ctypes.c_size_t(N))
        self.launch()  # loads it: a capture is not the time for that
        self.driver.synchronize()

    def launch(self) -> None:
        """y += x."""
        arguments = [ctypes.c_uint32(N), ctypes.c_float(1.0), self.x, self.y]
        self.driver.launch(self.axpy, self.stream, arguments, blocks=N // 256, threads=256)

    def once(self) -> bool:
        """Capture three launches, replay them; True if y is what it should be."""
        driver, graph, made = self.driver, ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuMemsetD32_v2", self.y, ctypes.c_uint32(0), ctypes.c_size_t(N))
        driver.call("cuStreamBeginCapture_v2", self.stream, THREAD_LOCAL)
        for _ in range(3):
            self.launch()
            time.sleep(OPEN_S / 3)
        if driver.code("cuStreamEndCapture", self.stream, ctypes.byref(graph)) or not graph.value:
            return False
        flags = ctypes.c_uint64(0)
        driver.call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, flags)
        driver.call("cuGraphLaunch", made, self.stream)
        driver.call("cuStreamSynchronize", self.stream)
        driver.call("cuGraphExecDestroy", made)
        driver.call("cuGraphDestroy", graph)
        return self._result() == [3.0] * N

    def _result(self) -> list[float]:
        values = (ctypes.c_float * N)()
        self.driver.call("cuMemcpyDtoH_v2", values, self.y, ctypes.c_size_t(4 * N))
        return list(values)


def main() -> None:
    capturing = Capturing()
    found = [capturing.once()]
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        found.append(capturing.once())
    print(json.dumps({"captures": len(found), "whole": sum(found)}))


if __name__ == "__main__":
    main()
