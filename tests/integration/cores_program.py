# SPDX-License-Identifier: Apache-2.0
"""A command that does what it is told, a line each, and answers with a line of JSON."""

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any

import krex

PR_SET_PDEATHSIG = 1


def thread(action: Any = None) -> int:
    """Start a thread that stays; its number."""
    begun = threading.Event()

    def live() -> None:
        if action:
            action()
        begun.set()
        signal.pause()

    started = threading.Thread(target=live, daemon=True)
    started.start()
    begun.wait()
    return started.native_id or 0


def fork() -> int:
    """Start a process that stays, and dies with this one; its number."""
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pause()
    return pid


def main() -> None:
    """Answer with this process's number first."""
    region = krex.region("timed")
    print(json.dumps(os.getpid()), flush=True)
    for line in sys.stdin:
        what, *words = line.split()
        answer: Any = None
        if what == "enter":
            region.__enter__()
        elif what == "leave":
            region.__exit__(None, None, None)
        elif what == "region_thread":
            answer = thread(lambda: krex.region("other").__enter__())
        elif what == "short_region":
            short = threading.Thread(target=krex.region("short")(lambda: None))
            short.start()
            short.join()
        elif what == "thread":
            answer = thread()
        elif what == "fork":
            answer = fork()
        elif what == "set":
            os.sched_setaffinity(0, set(map(int, words)))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
