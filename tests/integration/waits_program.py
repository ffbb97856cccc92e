# SPDX-License-Identifier: Apache-2.0
"""Commands that wait for each other: for a file lock, or for what a pipe takes or gives."""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Callable

from device_work import Work

OFD_SETLK, OFD_SETLKW = 37, 38
FLOOD_BYTES = 1 << 20  # far more than a pipe takes while nobody reads


def ofd(file: int, kind: int, command: int = OFD_SETLKW) -> None:
    fcntl.fcntl(file, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0))


TAKE: dict[str, Callable[[int], None]] = {
    "flock": lambda file: fcntl.flock(file, fcntl.LOCK_EX),
    "posix": lambda file: fcntl.lockf(file, fcntl.LOCK_EX),
    "ofd": lambda file: ofd(file, fcntl.F_WRLCK),
}
RELEASE: dict[str, Callable[[int], None]] = {
    "flock": lambda file: fcntl.flock(file, fcntl.LOCK_UN),
    "posix": lambda file: fcntl.lockf(file, fcntl.LOCK_UN),
    "ofd": lambda file: ofd(file, fcntl.F_UNLCK),
}


def holds(kind: str, path: str, then: str = "sleeps") -> None:
    """Have the lock until a line comes, and stay until the next."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    TAKE[kind](file)
    print("locked", flush=True)
    sys.stdin.readline()
    if then == "keeps":
        sys.stdin.readline()
    RELEASE[kind](file)
    end = time.monotonic() + 0.3
    while then == "computes" and time.monotonic() < end:
        pass
    sys.stdin.readline()


def wants(kind: str, path: str) -> None:
    """Take the same lock inside a region, after a submission."""
    work = Work()
    work.burst(1)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    with work.region("wants"):
        work.burst(1)
        print("inside", flush=True)
        TAKE[kind](file)
        work.burst(1)
        RELEASE[kind](file)
        print("got it", flush=True)
        sys.stdin.readline()


def tries(how: str, path: str) -> None:
    """The same as lock files are often taken: by trying, again and again."""
    work = Work()
    work.burst(1)
    with work.region("tries"):
        work.burst(1)
        print("inside", flush=True)
        file = os.open(path, os.O_RDWR)
        while not tried(file):
            if how == "opens":
                os.close(file)
            time.sleep(0.05)
            if how == "opens":
                file = os.open(path, os.O_RDWR)
        work.burst(1)


def tried(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def floods() -> None:
    """Write more than a pipe takes, inside a region."""
    work = Work()
    work.burst(1)
    with work.region("floods"):
        work.burst(1)
        for _ in range(16):
            sys.stdout.buffer.write(b"." * (FLOOD_BYTES // 16))
            sys.stdout.buffer.flush()
        work.burst(1)


def drinks() -> None:
    """Read to the end inside a region."""
    work = Work()
    work.burst(1)
    with work.region("drinks"):
        work.burst(1)
        while sys.stdin.buffer.read(4096):
            pass
        work.burst(1)


def quick() -> None:
    """A region that waits for nobody."""
    work = Work()
    work.burst(1)
    work.timed("quick")


WAYS: dict[str, Callable[..., None]] = {
    "holds": holds,
    "wants": wants,
    "tries": tries,
    "floods": floods,
    "drinks": drinks,
    "quick": quick,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]](*sys.argv[2:])
