# SPDX-License-Identifier: Apache-2.0
"""A busy sibling: kernels of so many milliseconds, two at a time, until it is ended.

    python busy.py MILLISECONDS READY-FILE [STEPS]

0 ms: at work, but not on the device. READY-FILE "-": it says "ready" on stdout instead. STEPS: how
many steps a kernel has, where it is known; else it is found out, which needs an idle device.
"""

import signal
import sys
import time
from pathlib import Path

from gpu.driver_api import Driver, Work

_LONGEST_S = 300  # whoever was to end this may have been killed


def main(milliseconds: float, ready: str, steps: int) -> None:
    signal.alarm(_LONGEST_S)
    driver = Driver()
    work = Work(driver)
    steps = steps or (work.steps_for(milliseconds * 1e-3) if milliseconds else 0)
    if ready == "-":
        print("ready", flush=True)
    else:
        Path(ready).touch()
    while True:
        if not steps:
            time.sleep(0.01)
            continue
        for _ in range(2):
            work.launch(steps)
        driver.synchronize()


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
