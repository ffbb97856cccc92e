# SPDX-License-Identifier: Apache-2.0
"""Harnesses that give up on what they measure, each in its way. CPython 3.8 or newer.

call_limits_program.py alarm | thread | process | kill | wait | storm

Says "given up", and the pid of who is left inside, or 0. Measures something at a line "again", says
so, and ends at the next line, without waiting for anybody.
"""

import concurrent.futures
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading

import call_harness
import call_limits

LIMIT_S = 0.05
STATUS = 3
STORM = 5000
events = []
HOLD = """
import call_harness, krex, os
call_harness.timed()
with krex.region():
    os.write(1, b"inside\\n")
    os.read(0, 1)
"""
CHILD = "import call_limits, os; call_limits.hangs(lambda: os.write(1, b'inside\\n'))"


def give_up(*_):
    raise TimeoutError


def limited(function, *words):
    """What the handler of a signal raises comes out of the middle of what is timed."""
    try:
        function(*words)
    except TimeoutError:
        return
    raise AssertionError("its limit did not fire")


def alarm():
    limited(call_limits.hangs, lambda: signal.setitimer(signal.ITIMER_REAL, LIMIT_S))


def wait():
    """The limit passes while the function waits: a child has the device, until it is told of that.

    The interpreter tells of a signal at once, whatever its handler has to wait for.
    """
    call_harness.timed()  # from here on only the region is waited for
    child = subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1)
    assert child.stdout.readline() == b"inside\n"
    os.set_blocking(child.stdin.fileno(), False)
    signal.set_wakeup_fd(child.stdin.fileno())
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    limited(call_limits.returns)
    signal.set_wakeup_fd(-1)
    assert child.wait() == 0


def storm():
    """Limits that pass at any moment: before the mark, after it, and where it begins and ends."""

    def until_it_fires():
        signal.setitimer(signal.ITIMER_REAL, random.uniform(5e-6, 2e-4))
        while True:
            call_limits.nothing()

    for _ in range(STORM):
        limited(until_it_fires)
    call_harness.timed()  # nothing that is marked: it has no region


def meet(event):
    """In who works for a pool, first."""
    events.append(event)


def hang():
    call_limits.hangs(events[0].set)


def abandon(kind, is_inside, *words):
    """Stop waiting for what a pool was given, while it is being measured."""
    pool = kind(1, *words, initializer=meet, initargs=(is_inside,))
    future = pool.submit(hang)
    is_inside.wait()
    try:
        future.result(LIMIT_S)
    except concurrent.futures.TimeoutError:
        pool.shutdown(wait=False)


def thread():
    abandon(concurrent.futures.ThreadPoolExecutor, threading.Event())


def process():
    spawn = multiprocessing.get_context("spawn")
    abandon(concurrent.futures.ProcessPoolExecutor, spawn.Event(), spawn)
    [worker] = multiprocessing.active_children()
    return worker.pid


def kill():
    """A child that has no chance to say anything: its supervisor's limit is SIGKILL."""
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=-1, start_new_session=True)
    assert child.stdout.readline() == b"inside\n"
    try:
        child.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def main():
    signal.signal(signal.SIGALRM, give_up)
    ways = {way.__name__: way for way in (alarm, thread, process, kill, wait, storm)}
    print("given up", ways[sys.argv[1]]() or 0, flush=True)
    if sys.stdin.readline() == "again\n":
        call_limits.returns()
        print("measured", flush=True)
        sys.stdin.readline()
    os._exit(STATUS)


if __name__ == "__main__":
    main()
