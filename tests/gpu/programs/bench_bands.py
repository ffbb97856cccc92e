# SPDX-License-Identifier: Apache-2.0
"""Measures kernels as a benchmark does: warm-up and timed launches in a region, and the median.

    python bench_bands.py DEVICE-KEY MEASUREMENTS LAUNCHES:STEPS ...

Prints as JSON "medians_s", a list for each kind of kernel with the median of each measurement, and
"sm_mhz", the device's clock after each round of them, where it can be read.
"""

import json
import statistics
import sys
import time

from gpu import clocks
from gpu.driver_api import Driver, Work

import krex

WARM_UP = 3
PAUSE_S = 0.01  # where a benchmark compiles and checks


def measure(work: Work, launches: int, steps: int) -> float:
    with krex.region():
        for _ in range(WARM_UP):
            work.launch(steps)
        return statistics.median(work.durations_s(steps, launches))


def main(device: str, measurements: int, kinds: list[tuple[int, int]]) -> None:
    work = Work(Driver())
    found: list[list[float]] = [[] for _ in kinds]
    sm_mhz: list[float] = []
    for _ in range(measurements):
        for medians, (launches, steps) in zip(found, kinds, strict=True):
            medians.append(measure(work, launches, steps))
            time.sleep(PAUSE_S)
        sm_mhz += [(clocks.read(device) or {}).get("sm_mhz", 0.0)]
    print(json.dumps({"medians_s": found, "sm_mhz": [mhz for mhz in sm_mhz if mhz]}))


if __name__ == "__main__":
    words = [word.partition(":") for word in sys.argv[3:]]
    kinds = [(int(launches), int(steps)) for launches, _, steps in words]
    main(sys.argv[1], int(sys.argv[2]), kinds)
