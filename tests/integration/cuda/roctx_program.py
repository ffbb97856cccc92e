# SPDX-License-Identifier: Apache-2.0
"""Ranges of roctx, by the library that the first word names, around timed kernels."""

import ctypes
import sys

import timing_program as timing

roctx = ctypes.CDLL(sys.argv[1])
roctx.roctxRangeStartA.restype = ctypes.c_uint64
roctx.roctxRangeStop.argtypes = [ctypes.c_uint64]


def pushed():
    levels = [roctx.roctxRangePushA(b"other"), roctx.roctxRangePushA(b"bench")]
    timing.pair()
    levels += [roctx.roctxRangePop(), roctx.roctxRangePop()]
    assert levels == [0, 1, 1, 0], levels


def started():
    first, second = roctx.roctxRangeStartA(b"bench"), roctx.roctxRangeStartA(b"other")
    assert (first, second) == (100, 101)
    timing.pair()
    roctx.roctxRangeStop(first)
    timing.pair()
    roctx.roctxRangeStop(second)


globals()[sys.argv[2]]()
