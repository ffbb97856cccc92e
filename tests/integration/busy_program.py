# SPDX-License-Identifier: Apache-2.0
"""A sibling that is busy until its stdin ends: on the device, or on the processor beside it."""

import select
import sys

from device_work import Work


def main(how: str) -> None:
    work = Work()
    work.burst(5)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        if how == "device":
            work.burst(5)
        else:
            sum(range(10_000))
    work.report(how)


if __name__ == "__main__":
    main(sys.argv[1])
