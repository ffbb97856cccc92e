# SPDX-License-Identifier: Apache-2.0
"""Times kernels in the ways that only HIP has, as ../cuda/timing_program.py does in others."""

import ctypes
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cuda"))

import names
import timing_program as timing
from hiprt import Handle, Size, hip, pointers

OWN = Handle(2)  # the calling thread's own stream
TOO_MANY = 1 << 12  # threads of a block


def launch(first: Any, last: Any, on: Handle = timing.main, threads: int = 64) -> int:
    """Launch with the events that are recorded before and behind it."""
    sizes = (threads, 1, 1, threads, 1, 1, Size(0))
    arguments = pointers((timing.Spin(timing.LONG_NS),))
    result: int = hip.hipExtModuleLaunchKernel(
        timing.spin, *sizes, on, arguments, None, first, last, 0
    )
    return result


def by_both():
    timing.ok(launch(timing.start, timing.stop))
    timing.read()


def by_its_end():
    timing.record(timing.start)
    timing.ok(launch(None, timing.stop))
    timing.read()


def by_its_beginning():
    timing.ok(launch(timing.start, None))
    timing.record(timing.stop)
    timing.read()


def by_none():
    timing.pair(lambda: timing.ok(launch(None, None)))


def aside():
    timing.pair(lambda: timing.ok(launch(None, None, timing.side)))


def after_one_that_failed():
    """Whose events are recorded by nobody."""
    assert launch(timing.start, timing.stop, threads=TOO_MANY)
    by_both()


def captured():
    graph = Handle()
    timing.ok(hip.hipStreamBeginCapture(timing.main, timing.RELAXED))
    timing.ok(launch(timing.start, timing.stop))
    timing.ok(hip.hipStreamEndCapture(timing.main, ctypes.byref(graph)))


def on_its_own_stream():
    """By the forms that mean the thread's own stream by none."""
    timing.ok(hip.hipEventRecord_spt(timing.start, None))
    timing.work(OWN)
    timing.ok(hip.hipEventRecord_spt(timing.stop, None))
    timing.ok(hip.hipStreamSynchronize_spt(None))
    timing.read()


def own_stream_joined():
    joint = names.event(timing.DISABLE_TIMING)
    timing.ok(hip.hipEventRecord_spt(timing.start, None))
    timing.work(timing.side)
    timing.record(joint, timing.side)
    timing.ok(hip.hipStreamWaitEvent_spt(None, joint, 0))
    timing.ok(hip.hipEventRecord_spt(timing.stop, None))
    timing.read()


def own_stream_with_flags():
    timing.ok(hip.hipEventRecordWithFlags(timing.start, OWN, 0))
    timing.work(timing.side)
    timing.ok(hip.hipEventRecordWithFlags(timing.stop, OWN, 0))
    timing.read()


if __name__ == "__main__":
    timing.main_program(globals())
