# SPDX-License-Identifier: Apache-2.0
"""Times kernels, in one way for each name on the command line, each marked by its name.

With `bare` before them nothing is marked; with `told` it waits for a line before each. The driver
is that of KREX_TEST_VENDOR: cuda, or hip.
"""

import ctypes
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if os.environ.get("KREX_TEST_VENDOR") == "hip":
    sys.path.append(str(Path(__file__).parents[1] / "hip"))
    import names as driver
else:
    import cu as driver

Address, Float, Handle, Size = driver.Address, driver.Float, driver.Handle, driver.Size
cu, event, function, get = driver.cu, driver.event, driver.function, driver.get
in_thread, launch, module = driver.in_thread, driver.launch, driver.module
ok, stream = driver.ok, driver.stream

LONG_NS, SHORT_NS, QUEUED_NS = 200_000, 10_000, 50_000_000
DISABLE_TIMING, RELAXED = 2, 2
Spin = ctypes.c_uint64

ok(cu.cuInit(0))
get("cuCtxCreate_v2", 0, 0)
spin = function(module(), "krex_spin")
ok(cu.cuFuncLoad(spin))
main, side = stream(), stream()
shim = ctypes.CDLL(None)
start, stop = event(), event()


def region(name: str) -> Any:
    """A mark of the program's own. A program that has none does not import krex."""
    import krex

    return krex.region(name)


def work(on: Handle = main, ns: int = LONG_NS) -> None:
    ok(launch(spin, on, Spin(ns)))


def record(what: Handle, on: Handle = main) -> None:
    ok(cu.cuEventRecord(what, on))


def read(first: Handle = start, last: Handle = stop) -> float:
    ms = Float()
    ok(cu.cuEventSynchronize(last))
    ok(cu.cuEventElapsedTime(ctypes.byref(ms), first, last))
    return ms.value


def order(before: Handle, after: Handle) -> None:
    """What comes to a stream is behind all that is in another."""
    joint = event(DISABLE_TIMING)
    record(joint, before)
    ok(cu.cuStreamWaitEvent(after, joint, 0))


def pair(inside=work, on: Handle = main) -> float:
    record(start, on)
    inside()
    record(stop, on)
    return read()


def good():
    work()
    pair()


def cold():
    pair()


def loop():
    for _ in range(20):
        pair()
        time.sleep(0.002)


def batch():
    """As some do: all is recorded, one wait, all is read."""
    pairs = [(event(), event()) for _ in range(10)]
    for first, last in pairs:
        record(first)
        work()
        record(last)
    ok(cu.cuCtxSynchronize())
    for first, last in pairs:
        read(first, last)


def keep_busy():
    """What comes next is queued behind it: a stall of the host's is not in the pair."""
    work(ns=QUEUED_NS)


def short():
    keep_busy()
    pair(lambda: work(ns=SHORT_NS))


def endless():
    pair(lambda: work(ns=1000 * LONG_NS))


def empty():
    keep_busy()
    pair(lambda: None)


def launched_aside():
    pair(lambda: work(side))


def aside_and_here():
    pair(lambda: (work(side), work(main)))


def joined():
    pair(lambda: (order(main, side), work(side), order(side, main)))


def joined_and_more():
    pair(lambda: (work(side), order(side, main), work(side)))


def joined_by_way_of_another():
    third = stream()
    pair(lambda: (work(side), order(side, third), order(third, main)))


def forked_only():
    pair(lambda: (order(main, side), work(main)))


def blocking_and_legacy():
    blocking = stream(0)
    pair(lambda: work(blocking), on=Handle())


def not_blocking_and_legacy():
    pair(lambda: work(side), on=Handle())


def aside_before():
    work(side)
    pair()


def by_another_thread():
    pair(lambda: in_thread(work))


def work_behind():
    record(start)
    work()
    record(stop)
    work()
    read()


def nested():
    outer, end = event(), event()
    record(outer)
    pair()
    record(end)
    read(outer, end)


def allocates():
    pair(lambda: (work(), get("cuMemAlloc_v2", Size(4096), kind=Address)))


def loads():
    pair(lambda: (work(), module()))


def behind_a_blocking_kernel():
    """As nvbench does: what is timed is queued behind a kernel that waits for the host."""
    page = get("cuMemAllocHost_v2", Size(4096))
    flag = ctypes.cast(page, ctypes.POINTER(ctypes.c_uint32))
    blocks = function(module(), "krex_wait_flag")
    for _ in range(3):
        flag[0] = 0
        ok(launch(blocks, main, Address(page.value)))
        record(start)
        work()
        record(stop)
        flag[0] = 1
        read()


def read_twice():
    pair()
    read()


def untimed():
    mark = event(DISABLE_TIMING)
    record(mark)
    work()
    ok(cu.cuEventSynchronize(mark))


def captured():
    graph = Handle()
    ok(cu.cuStreamBeginCapture_v2(main, RELAXED))
    record(start)
    ok(cu.cuStreamEndCapture(main, ctypes.byref(graph)))


def unread():
    record(start)
    work()
    ok(cu.cuStreamSynchronize(main))


def imports_krex():
    region("")


def unread_loop():
    for _ in range(20):
        unread()


def explicit_then_bare():
    with region("explicit"):
        pair()
    pair()


class Armed:
    """What an automatic mark of a function does."""

    def __init__(self, name: bytes = b"function") -> None:
        self.name = name

    def __enter__(self) -> None:
        shim.krex_region_arm(self.name)

    def __exit__(self, *exc: object) -> None:
        shim.krex_region_disarm()


def say(text: str) -> None:
    """What it does now, by the clock of the records."""
    print(text, time.monotonic_ns(), flush=True)


def synchronise() -> None:
    ok(cu.cuStreamSynchronize(main))


def armed_by_events():
    with Armed():
        work()  # as a first call, which compiles
        say("untimed")
        pair()


def armed_by_waits():
    """As who times by the clock of the host."""
    with Armed():
        work()
        say("untimed")
        synchronise()
        say("waited")
        for _ in range(3):
            work()
            synchronise()


def armed_once():
    with Armed():
        work()
        synchronise()


def armed_idly():
    with Armed():
        synchronise()
        synchronise()
        work()


def armed_twice():
    with Armed(b"outer"), Armed(b"inner"):
        pair()
        pair()


def armed_in_a_row():
    for i in range(5):
        with Armed(b"call %d" % i):
            pair()


def armed_after_explicit():
    with region("explicit"):
        work()
    with Armed():
        pair()


def main_program(ways: Mapping[str, Any]) -> None:
    """Do what the command line names of these."""
    options = {"bare", "told"} & set(sys.argv[1:])
    for name in sys.argv[1:]:
        if name in options:
            continue
        if "told" in options:
            assert sys.stdin.readline()
        if "bare" in options:
            ways[name]()
        else:
            with region(name):
                ways[name]()
        print(name, flush=True)
    ok(cu.cuCtxSynchronize())


if __name__ == "__main__":
    main_program(globals())
