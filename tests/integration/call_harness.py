# SPDX-License-Identifier: Apache-2.0
"""Functions that time something on a simulated GPU, of every kind. CPython 3.8 or newer."""

import ctypes
import functools

cu = ctypes.CDLL("libcuda.so.1")
_context = []  # once in a process


def timed():
    """Record two events, and read the time between them, in milliseconds."""
    if not _context:
        _context.append(ctypes.c_void_p())
        _ok(cu.cuInit(0))
        _ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(_context[0]), 0))
    _ok(cu.cuCtxSetCurrent(_context[0]))  # of each thread
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        _ok(cu.cuEventCreate(ctypes.byref(event), 0))
    for event in events:
        _ok(cu.cuEventRecord(event, None))
    _ok(cu.cuEventSynchronize(events[1]))
    elapsed = ctypes.c_float()
    _ok(cu.cuEventElapsedTime(ctypes.byref(elapsed), *events))
    return elapsed.value


def _ok(result):
    assert result == 0, result


def plain(a, /, b=2, *rest, c, **more):
    """Says what it was given."""
    timed()
    return a, b, rest, c, more


def items():
    timed()
    yield 1
    timed()
    yield 2


async def awaited():
    timed()
    return 3


def fails():
    timed()
    raise ValueError("goes through")


@functools.lru_cache
def cached(key):
    timed()
    return key


class Timer:
    def run(self):
        timed()
        return self

    @classmethod
    def of_class(cls):
        timed()
        return cls

    @staticmethod
    def static():
        timed()
        return 4

    @property
    def value(self):
        timed()
        return 5
