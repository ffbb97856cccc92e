# SPDX-License-Identifier: Apache-2.0
"""Does what a harness does, or a region of its own: `idle_program.py WAY`, a step for each line.

It says what it has done, and when. Each way is a generator that is idle where it yields.
"""

import ctypes
import os
import signal
import sys

import timing_program as times

LONG_NS = 1_500_000_000


def armed_pairs():
    """Two pairs, and the host is busy between them."""
    with times.Armed():
        times.pair()
        yield
        times.pair()


def armed_three_pairs():
    """The same, twice."""
    with times.Armed():
        for _ in range(2):
            times.pair()
            yield
        times.pair()


def armed_open_pair():
    """The host is busy inside what is timed."""
    with times.Armed():
        times.record(times.start)
        times.work()
        times.synchronise()
        yield
        times.record(times.stop)
        times.read()


def armed_host_clock():
    """No events time it."""
    with times.Armed():
        for _ in range(3):
            times.work()
            times.synchronise()
        yield
        times.work()
        times.synchronise()


def armed_tail():
    """The host is busy when all is timed."""
    with times.Armed():
        times.pair()
        yield


def armed_long_kernel():
    """The device is busy, and nothing is submitted."""
    with times.Armed():
        times.record(times.start)
        times.work(ns=LONG_NS)
        times.record(times.stop)
        yield
        times.read()


def events_open_pair():
    times.record(times.start)
    times.work()
    times.synchronise()
    times.record(times.stop)
    yield
    times.pair()


def behind_a_spinning_kernel():
    """As nvbench does: the kernel spins until the host has queued all of a sample."""
    page = times.get("cuMemAllocHost_v2", times.Size(4096))
    flag = ctypes.cast(page, ctypes.POINTER(ctypes.c_uint32))
    flag[0] = 0
    spins = times.function(times.module(), "krex_wait_flag")
    times.ok(times.launch(spins, times.main, page))
    yield
    times.record(times.start)
    times.work()
    times.record(times.stop)
    flag[0] = 1
    times.read()


def explicit():
    with times.region("explicit"):
        times.pair()
        yield
        times.pair()


def limited():
    """It waits for its region, under a time limit of its own if there is to be one."""
    signal.signal(signal.SIGALRM, lambda *_: times.say("handler"))
    with times.Armed():
        signal.alarm(int(os.environ.get("LIMIT_S", "0")))
        times.pair()
        signal.alarm(0)
    yield


def limited_unmarked():
    """It waits at the gate."""
    signal.signal(signal.SIGALRM, lambda *_: times.say("handler"))
    signal.alarm(int(os.environ.get("LIMIT_S", "0")))
    times.work()
    signal.alarm(0)
    yield


def short():
    """What others do meanwhile."""
    with times.region("short"):
        times.pair()
    yield


if __name__ == "__main__":
    steps = globals()[sys.argv[1]]()
    times.say("ready")
    while True:
        sys.stdin.readline()
        if next(steps, steps) is steps:
            break
        times.say("idle")
    times.say("done")
