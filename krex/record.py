# SPDX-License-Identifier: Apache-2.0
"""The region record and its versioned schema; docs/records.md is its reference.

A key that is absent means unknown: nothing is written as null. Within one schema version keys and
reasons are only added, so a reader ignores keys that it does not know, and takes a reason that it
does not know for what it is: a region that was not exclusive.
"""

from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

SCHEMA: Final = "krex.region"
SCHEMA_VERSION: Final = 1

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


class Handshake(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """How long each step took between a region's turn and its grant."""

    heavy_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds until no sibling was inside a heavy call (one that allocates, or "
            "makes or destroys a context or a queue), with new ones held back."
        ),
    ] = UNSET
    in_flight_s: Annotated[
        Seconds | UnsetType,
        Meta(description="Seconds from closing the gate until no sibling was inside a submission."),
    ] = UNSET
    drain_s: Annotated[
        Seconds | UnsetType,
        Meta(description="Seconds until all that the siblings had submitted was complete."),
    ] = UNSET
    freeze_s: Annotated[
        Seconds | UnsetType,
        Meta(description="Seconds until the sibling commands stood still."),
    ] = UNSET
    pin_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds until the holder's submitting threads were pinned. Absent: no "
            "slice, so there is nothing to pin them to."
        ),
    ] = UNSET


class Siblings(Struct, kw_only=True, frozen=True):
    """The processes on the device, outside the holder and its descendants, at the grant."""

    processes: Annotated[Count, Meta(description="How many there were.")]
    clean: Annotated[
        Count,
        Meta(
            description="Those that had submitted nothing since their last drain: they were not "
            "asked for one."
        ),
    ]
    drained: Annotated[
        Count, Meta(description="Those that were asked to drain, and whose work was waited for.")
    ]
    commands_frozen: Annotated[
        Count,
        Meta(
            description="Commands (not processes) that were frozen, those with no process on the "
            "device yet included. The holder's own command is never frozen."
        ),
    ]
    commands_sharing_a_pipe: Annotated[
        Count,
        Meta(
            description="Commands that were not frozen, or only until it was noticed, because a "
            "pipe connects one's standard streams to the holder's command: one may wait for the "
            "other. They were kept off the device and drained."
        ),
    ]
    commands_thawed_for_a_lock: Annotated[
        Count,
        Meta(
            description="Commands that were frozen first, and let run again before the region's "
            "end because the holder waited for a file lock of theirs. They were kept off the "
            "device all the same."
        ),
    ]
    commands_thawed_for_a_signal: Annotated[
        Count,
        Meta(
            description="Commands that were frozen first, and let run again before the region's "
            "end because somebody wanted to interrupt or to end them. They were kept off the "
            "device all the same."
        ),
    ]
    processes_not_frozen: Annotated[
        Count,
        Meta(
            description="Processes of commands that have no cgroup: they were kept off the device, "
            "but could not be frozen."
        ),
    ]


class Cores(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """The CPUs of the command and of the region; docs/slices.md says how they are chosen."""

    no_slice: Annotated[
        str | UnsetType,
        Meta(
            description="Why the command has no CPUs of its own and nothing is pinned: a code of "
            "docs/slices.md. Absent: it has."
        ),
    ] = UNSET
    slice: Annotated[
        list[int] | UnsetType,
        Meta(description="The CPUs that the command was started on, and runs on outside regions."),
    ] = UNSET
    reserved: Annotated[
        list[int] | UnsetType,
        Meta(description="The CPUs that are kept free for the regions on this device."),
    ] = UNSET
    notes: Annotated[
        list[str] | UnsetType,
        Meta(description="What to know of them: codes of docs/slices.md; further ones may come."),
    ] = UNSET
    pinned: Annotated[
        Count | UnsetType,
        Meta(
            description="How many of the holder's threads were pinned to the reserved CPUs: those "
            "that ever submitted, and those in a region. Absent: nothing was to be pinned."
        ),
    ] = UNSET
    pin_failed: Annotated[
        Count | UnsetType,
        Meta(description="How many could not be: they changed their user, or their cpuset did."),
    ] = UNSET
    changed: Annotated[
        Count | UnsetType,
        Meta(
            description="How many of those pinned had other CPUs at the hold's end, by their own "
            "wish. They were left alone; all the others have what they had before."
        ),
    ] = UNSET
    guessed: Annotated[
        Count | UnsetType,
        Meta(
            description="How many threads were born meanwhile of one of several that differed: "
            "they have the CPUs of their process's first thread."
        ),
    ] = UNSET


class RegionRecord(Struct, omit_defaults=True, kw_only=True):
    """One outermost mark: did it have the device to itself, and if not, why."""

    schema: Annotated[Literal["krex.region"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    region_id: Annotated[str, Meta(description="Names this region. Opaque.")]
    command: Annotated[
        str,
        Meta(
            description="The command, by the name that `krex status` shows. Opaque; the same in "
            "all records of one `krex run`."
        ),
    ]
    tenant: Annotated[
        str, Meta(description="Whose command it was: `--tenant`, else the user id in decimal.")
    ]
    pid: Annotated[
        int,
        Meta(
            description="The process that entered the region, the first one of a whole command, as "
            "the controller numbers it."
        ),
    ]
    device: Annotated[
        str,
        Meta(
            description="The device's key: `pci:<address>`; `cpu:0` for every CPU platform of the "
            "machine."
        ),
    ]
    marker: Annotated[
        str,
        Meta(
            description="What marked the region. `explicit`: `krex.region` or `krex.h`. `whole`: "
            "`KREX_REGION=whole`. Further values may come."
        ),
    ]
    name: Annotated[
        str, Meta(description="The name given to the mark, cut to 127 bytes; may be empty.")
    ]
    index: Annotated[
        Count, Meta(description="The region's place among those of its process, from 0.")
    ]
    hold_id: Annotated[
        str | UnsetType,
        Meta(
            description="The period of exclusivity that served the region. Regions of a process "
            "and its descendants may share one. Opaque. Absent: it was granted none."
        ),
    ] = UNSET
    exclusive: Annotated[
        bool,
        Meta(
            description="True: certain, from the grant to the end, that no sibling used the "
            "device. False: it was not so, or not certain; `reasons` says why."
        ),
    ]
    reasons: Annotated[
        list[str],
        Meta(
            description="Why it was not exclusive, first found first; empty exactly if it was. "
            "docs/records.md lists them; further ones may come."
        ),
    ]
    wait_s: Annotated[
        Seconds,
        Meta(
            description="Seconds from the request to the grant (exclusive or not), the handshake "
            "included; for a region that ended ungranted, to its end."
        ),
    ]
    hold_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds from the grant (exclusive or not) to the region's end. Absent: it "
            "ended ungranted, or nobody saw its end."
        ),
    ] = UNSET
    handshake: Annotated[
        Handshake | UnsetType, Meta(description="Absent: no handshake was completed.")
    ] = UNSET
    siblings: Annotated[
        Siblings | UnsetType, Meta(description="Absent: no handshake was completed.")
    ] = UNSET
    cpus: Annotated[
        Cores | UnsetType, Meta(description="Absent: the controller is of an earlier version.")
    ] = UNSET
    release_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds from the end of the hold's last region until its siblings ran "
            "again and the gate was open. Absent: there was no hold."
        ),
    ] = UNSET
    submissions: Annotated[
        Count | UnsetType,
        Meta(
            description="How many driver calls of the region's process put work on the device "
            "between grant and end; of all its processes, for a whole command. Absent like "
            "`hold_s`."
        ),
    ] = UNSET
    longest_gate_wait_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds of the longest wait at a closed gate in the life of the region's "
            "process so far, whether inside this region or not. Absent: nobody saw its end."
        ),
    ] = UNSET
    work_at_end: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether work of the holder was not seen to complete within 0.1 s of the "
            "hold's end. Absent: there was no hold."
        ),
    ] = UNSET


# What a type can't say: a record is exclusive, or it says why not.
CONSISTENCY: Final[dict[str, Any]] = {
    "if": {"properties": {"exclusive": {"const": True}}},
    "then": {"properties": {"reasons": {"maxItems": 0}}, "required": ["hold_id", "hold_s"]},
    "else": {"properties": {"reasons": {"minItems": 1}}},
}


class Reason(NamedTuple):
    """What a reason in a record means, and what its reader can do."""

    meaning: str
    remedy: str


_AGAIN = "Run it again; if it comes back, stop the controller and look at `krex serve`."

# All there are. docs/records.md shows this table; a test keeps the three (code, table, page) alike.
REASONS: Final = {
    "exclusive_none": Reason(
        "The command was run with `--exclusive none`.", "Leave that option out."
    ),
    "max_wait_exceeded": Reason(
        "The device did not become free within `--max-wait`.",
        "Raise `--max-wait`; `krex status` shows who holds the device and who queues.",
    ),
    "left_while_waiting": Reason(
        "The region ended before it was granted: interrupted, or its thread ended.",
        "Nothing, if you interrupted it.",
    ),
    "process_died": Reason(
        "The process ended inside the region.",
        "Leave the region before the process ends; see why it died.",
    ),
    "max_hold_exceeded": Reason(
        "The region held the device for `--max-hold` seconds; it then went on without.",
        "Mark less, or raise `--max-hold`.",
    ),
    "krex_run_died": Reason(
        "The command's `krex run` ended before it: nobody was left to say when it did.",
        "Do not kill `krex run`; it passes signals on to the command.",
    ),
    "heavy_call_running": Reason(
        "A sibling was inside an allocation, or the making of a context or queue, for over 2 s.",
        "Run it again; siblings that allocate less often are better company.",
    ),
    "submission_in_flight": Reason(
        "A sibling's driver call that submits work did not return within 0.5 s, or its thread "
        "jumped out of it.",
        "Look for a sibling whose queue is full, or a machine without a free core.",
    ),
    "sibling_not_drained": Reason(
        "Work of a sibling did not complete within 5 s: a long kernel, or one that waits for "
        "something that its own program has yet to do, such as an event callback that waits at the "
        "gate.",
        "Run it beside other siblings, or when that one has ended.",
    ),
    "freeze_incomplete": Reason(
        "A sibling command did not stand still within 0.1 s of being frozen.",
        "Look for a sibling process that hangs in the kernel (state D).",
    ),
    "sibling_ran": Reason(
        "On a CPU device, where the cores are the device: a sibling that was not frozen, since it "
        "can't be or the holder depends on it (a pipe, a file lock), used more than 1 % of a core "
        "meanwhile.",
        "Start it by `krex run`, on a machine with a writable cgroup v2; take locks, and write to "
        "pipes, outside the region.",
    ),
    "sibling_not_frozen": Reason(
        "On a CPU device: a sibling that could not be frozen ended meanwhile, or the kernel does "
        "not count, so nobody knows how much it computed.",
        "Start that command by `krex run`, on a machine with a writable cgroup v2.",
    ),
    "sibling_thawed": Reason(
        "A sibling command was let run on while the region lasted: by `krex thaw`, or by its `krex "
        "run` because the controller had stood still.",
        "Do not thaw by hand what `krex status` shows as frozen by a hold.",
    ),
    "unregistered_process": Reason(
        "A process uses the device without being registered: the board is full, or its controller "
        "died and another one serves the device now.",
        "Run fewer processes on the device; wait for the end of those that were running when the "
        "controller died, or start them again.",
    ),
    "unlisted_submission": Reason(
        "A process on the device asked for a function that can submit work and that KREX does not "
        "intercept.",
        "Leave out the extension that needs it, or run that program alone.",
    ),
    "context_on_other_device": Reason(
        "The region's process has a context on a second device as well.",
        "Use one device a command.",
    ),
    "affinity_widened": Reason(
        "A thread of the region's own command, or of a sibling that was not frozen, may run on the "
        "CPUs reserved for the region: it widened the affinity that it was started with.",
        "Leave the affinity as it is, or set it within `cpus.slice`; look for `taskset`, `numactl` "
        "and thread binding (`OMP_PLACES`) inside the command.",
    ),
    "gate_found_closed": Reason("The gate was closed although nobody held the device.", _AGAIN),
    "no_membarrier": Reason(
        "The kernel refused the controller a membarrier, and a process on the device relies on it.",
        "`krex doctor` says why; run controller and commands under the same seccomp profile.",
    ),
    "lease_lost": Reason(
        "The controller stood still for more than a second, and waiting processes reopened the "
        "gate.",
        "Look for a machine without a free core, or one that was suspended.",
    ),
    "began_without_grant": Reason(
        "The controller stood still for more than a second, and the region began without it.",
        "Look for a machine without a free core, or one that was suspended.",
    ),
    "controller_lost": Reason(
        "The controller ended while the region was open; `krex run` wrote the record.",
        "Run it again; if you did not end the controller, `krex serve` shows why it ends.",
    ),
    "controller_error": Reason(
        "A fault in KREX itself; what failed follows after a colon.", "Report it, please."
    ),
}
