# SPDX-License-Identifier: Apache-2.0
"""Ranges of NVTX, by the package of that name, around timed kernels: one way for each word."""

import sys

import cu
import nvtx
import timing_program as timing

domain = nvtx.get_domain("lab")
wide = "größe"


def pushed():
    with nvtx.annotate("bench"):
        timing.work()
        timing.pair()


def another():
    with nvtx.annotate("other"):
        timing.pair()


def nested():
    with nvtx.annotate("outer"):
        timing.pair()
        with nvtx.annotate("bench"):
            with nvtx.annotate("inner"):
                timing.pair()
            timing.pair()
        timing.pair()


def in_domain():
    with nvtx.annotate("bench", domain="lab"):
        timing.pair()


def domains_interleaved():
    """Each domain has a stack of its own."""
    attributes = domain.get_event_attributes(message="bench")
    domain.push_range(attributes)
    nvtx.push_range("other")
    domain.pop_range()
    timing.pair()
    nvtx.pop_range()


def started():
    first = nvtx.start_range("bench")
    second = nvtx.start_range("other")
    timing.pair()
    nvtx.end_range(first)
    timing.pair()
    nvtx.end_range(second)


def wide_name():
    with nvtx.annotate(wide):
        timing.pair()


def marked():
    nvtx.mark("bench")
    timing.pair()


def thread_ends_inside():
    def begin():
        nvtx.push_range("bench")
        timing.pair()

    cu.in_thread(begin)
    timing.pair()


for word in sys.argv[1:]:
    globals()[word]()
