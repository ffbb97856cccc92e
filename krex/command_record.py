# SPDX-License-Identifier: Apache-2.0
"""What a report says of a whole command, where there is something to say; docs/records.md.

Only a command that may have failed because of others gets such an object: by a time limit of its
own while it stood still beside somebody's region, or waited for the device; or for want of memory.
A report is a list of regions otherwise. A reader tells them apart by `schema`.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from krex.record import LIMIT_MEANING, OOM_MEANING, MemoryRefusal
from krex.timing_record import Count, Seconds

SCHEMA: Final = "krex.command"
SCHEMA_VERSION: Final = 1


class CommandRecord(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """One `krex run` command, at its end: what others may have to do with its failure."""

    schema: Annotated[Literal["krex.command"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    command: Annotated[
        str, Meta(description="Its name, as in its region records and in `krex status`. Opaque.")
    ]
    tenant: Annotated[
        str, Meta(description="Whose it was: `--tenant`, else the user id in decimal.")
    ]
    device: Annotated[str, Meta(description="The key of the device that it ran on.")]
    argv: Annotated[list[str], Meta(description="Its command line, cut where it is long.")]
    status: Annotated[
        Count, Meta(description="Its exit status; 128+N if signal N ended it, as `krex run` gives.")
    ]
    duration_s: Annotated[Seconds, Meta(description="Seconds from its start to its end.")]
    freezes: Annotated[Count, Meta(description="How many times it was frozen.")]
    frozen_s: Annotated[Seconds, Meta(description="Seconds for which it stood still, in all.")]
    longest_freeze_s: Annotated[
        Seconds, Meta(description="Seconds for which it stood still at a stretch, at most.")
    ]
    after_thaw_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds from its last thaw to its end; 0 if it ended frozen. Absent: it "
            "was never frozen."
        ),
    ] = UNSET
    oom_while_shared: Annotated[list[MemoryRefusal] | UnsetType, Meta(description=OOM_MEANING)] = (
        UNSET
    )
    limit_wait_s: Annotated[Seconds | UnsetType, Meta(description=LIMIT_MEANING)] = UNSET
    timed_pairs_total: Annotated[
        Count | UnsetType,
        Meta(
            description="Timed pairs that its processes read, as `timing` of a region counts them. "
            "Absent: the controller is of an earlier version."
        ),
    ] = UNSET
    timed_pairs_outside: Annotated[
        Count | UnsetType,
        Meta(description="Those of them that did not lie in one region. Absent likewise."),
    ] = UNSET
    limit_suspected: Annotated[
        bool,
        Meta(
            description="Whether a time limit of its own may have fired because it stood still: "
            "its status was neither 0 nor that of Ctrl-C (130), it ended within a second of a "
            "thaw, or frozen, and it had stood still for 0.1 s and 1 % of its duration at least."
        ),
    ]
