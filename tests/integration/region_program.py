# SPDX-License-Identifier: Apache-2.0
"""A benchmarking command: real kernels, and some regions. Prints its intervals as JSON."""

import os
import sys
import time

from device_work import Work, now_ns


def main(regions: int, misbehave: str) -> None:
    work = Work()
    work.burst(20)
    for index in range(regions):
        with work.region(f"timed-{index}"):
            if misbehave:
                print("inside", flush=True)
                print(now_ns(), flush=True)
            if misbehave == "crash":
                os.kill(os.getpid(), 9)
            if misbehave == "exit":
                os._exit(0)
            if misbehave == "hang":
                time.sleep(2)
            if misbehave == "pause":
                sys.stdin.readline()
            if misbehave == "late":
                work.submit(400)  # and nobody waits for their end
            else:
                work.burst(15)
        work.burst(20)
    work.report("program")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
