# SPDX-License-Identifier: Apache-2.0
"""What a region's record says of timed pairs."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


class Timing(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """What the calls of the driver say of the timing. docs/audit.md says what each is worth.

    A timed pair is two timing-enabled events whose distance was read, or an OpenCL command whose
    end was.
    """

    timed_events: Annotated[
        Count, Meta(description="Timing-enabled events that were recorded in the region.")
    ]
    timed_pairs_inside: Annotated[
        Count,
        Meta(description="Pairs with both ends in the region that were read before it ended."),
    ]
    timed_pairs_total: Annotated[
        Count, Meta(description="Pairs that the process had read until then, in its life.")
    ]
    timed_pairs_outside: Annotated[
        Count, Meta(description="Those of them that did not lie in one region, of whatever kind.")
    ]
    timed_s: Annotated[
        Seconds, Meta(description="Seconds of all pairs in the region together, as read.")
    ]
    shortest_pair_s: Annotated[
        Seconds | UnsetType,
        Meta(description="Seconds of the shortest of them. Absent: there was none."),
    ] = UNSET
    shortest_pair_launches: Annotated[
        Count | UnsetType,
        Meta(description="Submissions between the two events of that one. Absent likewise."),
    ] = UNSET
    cold_start: Annotated[
        bool,
        Meta(description="Whether the process's first pair is in it, and no launch came before."),
    ]
    below_noise_floor: Annotated[
        Count, Meta(description="Pairs in the region that took less than 0.1 ms.")
    ]
    empty_pairs: Annotated[
        Count, Meta(description="Pairs with no submission between their two events.")
    ]
    uncovered_pairs: Annotated[
        Count,
        Meta(
            description="Pairs with launches, by the thread that timed them, on a stream that the "
            "stop event is not behind."
        ),
    ]
    shared_pairs: Annotated[
        Count, Meta(description="Pairs between whose events other threads submitted.")
    ]
    pairs_with_work_behind: Annotated[
        Count,
        Meta(description="Pairs with submissions between the stop event and its read-out."),
    ]
    disturbed_pairs: Annotated[
        Count,
        Meta(
            description="Pairs between whose events memory was allocated or code loaded, by the "
            "calls of the program."
        ),
    ]
