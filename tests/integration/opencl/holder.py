# SPDX-License-Identifier: Apache-2.0
"""The process that enters regions: says "inside" in each, and prints their intervals as JSON.

Arguments: how many, and the extensions to ask for before. Intervals are on the clock of PoCL's
profiling timestamps, read first and last inside the with-block.
"""

import json
import sys
import time

from device import Device, now_ns
from raw import Raw

import krex

INSIDE_S = 0.12
BETWEEN_S = 0.05


def main(regions: int, *asks: str) -> None:
    device = Device()
    assert all(map(Raw().extension, asks))
    numbers = device.numbers()
    intervals = []
    for index in range(regions):
        with krex.region(f"timed-{index}"):
            begin = now_ns()
            print("inside", flush=True)
            while now_ns() - begin < INSIDE_S * 1e9:
                device.step(numbers)
                device.queue.finish()
            intervals.append([begin, now_ns()])
        time.sleep(BETWEEN_S)
    print(json.dumps(intervals), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
