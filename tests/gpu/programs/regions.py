# SPDX-License-Identifier: Apache-2.0
"""One short region after the other, each with kernels of a tenth of a millisecond.

    python regions.py REGIONS STEPS

STEPS: of a kernel; 0: an empty one.
"""

import sys
import time

from gpu.driver_api import LEGACY_STREAM, Driver, Work

import krex

LAUNCHES = 5
PAUSE_S = 0.02  # in which the siblings get on with their work


def main(regions: int, steps: int) -> None:
    driver = Driver()
    work, noop = Work(driver), driver.function("krex_check_noop")
    for _ in range(regions):
        with krex.region():
            for _ in range(LAUNCHES):
                if steps:
                    work.launch(steps)
                else:
                    driver.launch(noop, LEGACY_STREAM, [])
            driver.synchronize()
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
