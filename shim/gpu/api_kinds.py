# SPDX-License-Identifier: Apache-2.0
"""What a function can do to a device: the kinds that the vendors' api.def have in common.

Every function is named in a vendor's tables. There are no patterns and no default, so that a new
function asks for a decision. In doubt a function is of the stronger kind: a heavy call too many
waits a little, one too few spoils somebody's measurement.
"""

from collections.abc import Iterator, Mapping

# What each kind means. What comes before the first `_` is its class.
KINDS = {
    "SUBMIT": "leaves work on a device, or work that is ordered with its queues",
    "SUBMIT_SYNC": "the same, and may wait inside the call until it is done",
    "SUBMIT_HOST": "has the driver call back into the program when the stream gets there",
    "SUBMIT_WAIT": "makes a stream wait for what may come from outside the device, or never",
    "SUBMIT_EVENT": "records or waits for an event: orders others, no load of its own",
    "SUBMIT_RECORD": "records an event on a stream, which may time",
    "SUBMIT_JOIN": "makes a stream wait for an event",
    "SUBMIT_ALLOC": "allocates in the order of a stream: that there is no memory is reported",
    "HEAVY": "allocates, frees, maps or loads: disturbs the device or can take seconds",
    "HEAVY_LOAD": "the same: loads code",
    "HEAVY_STREAM": "the same: destroys a stream, and with it what is captured there",
    "HEAVY_ALLOC": "the same: allocates device memory, and that there is none is reported",
    "CONTEXT": "brings a context to life, or hands one out: needs a ticket",
    "CONTEXT_END": "destroys a context, or can",
    "CAPTURE": "begins a stream capture: deferred while a region is acquired, and counted",
    "CAPTURE_END": "ends one: never gated, counted down",
    "RESOLVE": "hands out function addresses",
    "TRACK_MADE": "makes an event: not gated, but the shim has to know",
    "TRACK_GONE": "destroys one: likewise",
    "TRACK_READ": "reads the distance of two: likewise, and must never be gated",
    "TRACK_WAIT": "waits for work: likewise",
    "NEVER": "waits and queries, or what somebody's wait depends on: must never be gated",
    "PASS": "can't touch the device (reflect, set, build): not gated",
}


def decisions(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each (function, kind), in the order of the tables; a name in two of them comes twice."""
    for kind, text in names.items():
        for name in text.split():
            yield name, kind
