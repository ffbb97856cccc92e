# SPDX-License-Identifier: Apache-2.0
"""A holder, which enters a region for each line it reads (name, seconds), or a busy sibling.

On the device named, which need not exist: there they only compute. Without a name on the real one.

Says its pid when it is ready, and its intervals as JSON at the end of its stdin.
"""

import json
import os
import select
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from device_work import Work


class Computing(Work):
    """The same without a device."""

    def __init__(self) -> None:
        self.regions, self.names, self._events = [], [], []

    def burst(self, count: int) -> None:
        for _ in range(count):
            sum(range(2000))


def hold(work: Work) -> None:
    for line in sys.stdin:
        name, seconds = line.split()
        work.burst(3)  # dirty, as who checks its results before it measures
        with work.region(name):
            end = time.monotonic() + float(seconds)
            work.burst(10)
            while time.monotonic() < end:
                work.burst(10)
        print(json.dumps({"name": name, "region": work.regions[-1]}), flush=True)


def disturb(work: Work) -> None:
    while not select.select([sys.stdin], [], [], 0)[0]:
        work.burst(2)


def main(role: str, device: str) -> None:
    work = Computing() if device else Work()
    work.burst(3)
    print(os.getpid(), flush=True)
    {"holder": hold, "sibling": disturb}[role](work)
    work.report(role)


if __name__ == "__main__":
    main(*sys.argv[1:])
