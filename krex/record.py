# SPDX-License-Identifier: Apache-2.0
"""The region record and its versioned schema; docs/records.md is its reference.

A key that is absent means unknown: nothing is written as null. Within one schema version keys and
reasons are only added, so a reader ignores keys that it does not know, and takes a reason that it
does not know for what it is: a region that was not exclusive.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from krex.timing_record import Count, Seconds, Timing

SCHEMA: Final = "krex.region"
SCHEMA_VERSION: Final = 1


class Handshake(Struct, omit_defaults=True, kw_only=True):
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
        Meta(
            description="Seconds until the sibling commands stood still; meanwhile the device was "
            "asked who is there. Absent: they were not to, by `--protect`."
        ),
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
    commands_left_running: Annotated[
        Count | UnsetType,
        Meta(
            description="Commands that ran on meanwhile because the region's own was started with "
            "`--protect` gate or pin, those that started later included. They were kept off the "
            "device and drained. Absent: the controller is of an earlier version."
        ),
    ] = UNSET


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


class MemoryHolder(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """A command that may have had memory of the device."""

    command: Annotated[
        str,
        Meta(description="Its name. Empty: of all processes together that are of no command."),
    ]
    processes: Annotated[Count, Meta(description="How many of its processes were on the device.")]
    reserved_bytes: Annotated[
        Count, Meta(description="What was reserved for it by `--mem`; it may have had more.")
    ]
    held_bytes: Annotated[
        Count | UnsetType,
        Meta(
            description="What its processes had of the memory just after the refusal, by the "
            "device's own word, with what their contexts took. Absent: nobody knows."
        ),
    ] = UNSET


class ForeignProcess(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """A process with a context on the device that was not registered there."""

    pid: Annotated[
        int,
        Meta(description="As the controller numbers it; 0: of some that it can't see."),
    ]
    name: Annotated[
        str | UnsetType,
        Meta(description="Its program's, as the kernel has it. Absent: it could not be seen."),
    ] = UNSET
    command: Annotated[
        str | UnsetType,
        Meta(description="The command that it belonged to. Absent: to none."),
    ] = UNSET


class ForeignProcesses(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """Who was on the device beside those that KREX keeps apart, by the device's own word."""

    at_start: Annotated[
        list[ForeignProcess] | UnsetType,
        Meta(
            description="At the hold's grant; on a real device up to a second before. At most 16. "
            "Absent: nobody knows."
        ),
    ] = UNSET
    at_end: Annotated[
        list[ForeignProcess] | UnsetType,
        Meta(description="At the hold's end. At most 16. Absent: nobody knows."),
    ] = UNSET


class MemoryRefusal(Struct, kw_only=True, frozen=True):
    """An allocation that the driver refused for want of memory."""

    pid: Annotated[int, Meta(description="The process that asked for it.")]
    wanted_bytes: Annotated[Count, Meta(description="For how much it asked; 0: that is unknown.")]
    others: Annotated[
        list[MemoryHolder], Meta(description="Who else was on the device; never empty.")
    ]


OOM_MEANING = (
    "Allocations of the command that were refused until then while other commands were on the "
    "device: alone they might not have been, so a failure may not be the program's. At most 16. "
    "Absent: there were none."
)


LIMIT_MEANING = (
    "Seconds of the longest wait for the device, inside a call of the driver or `krex_begin`, of a "
    "second at least, in which a time limit of the program's own passed (`alarm`, `setitimer`): "
    "the limit counted that wait, and a handler in Python ran only after it. Of the processes so "
    "far. Absent: there was none."
)


class EarlierHold(Struct, kw_only=True, frozen=True):
    """A hold that a region yielded, and came back for another."""

    hold_id: Annotated[str, Meta(description="As `hold_id` of the region.")]
    granted_ns: Annotated[Count, Meta(description="Likewise.")]
    released_ns: Annotated[Count, Meta(description="Likewise.")]
    holder_pids: Annotated[list[int], Meta(description="Likewise.")]


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
            "machine; `sim:<number>`."
        ),
    ]
    simulated: Annotated[
        bool,
        Meta(
            description="True: the device is a simulated one, and what was measured on it says "
            "nothing about a real one. Absent: it is real."
        ),
    ] = False
    marker: Annotated[
        str,
        Meta(
            description="What marked the region. `explicit`: `krex.region` or `krex.h`. `whole`: "
            "`KREX_REGION=whole`. `call`, `nvtx`, `events`: what `KREX_REGION` says, or a known "
            "function. Further values may come."
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
            description="True: certain, from the grant to the end of each hold, that no sibling "
            "used the device. False: it was not so, or not certain; `reasons` says why."
        ),
    ]
    reasons: Annotated[
        list[str],
        Meta(
            description="Why it was not exclusive, first found first; empty exactly if it was. "
            "docs/records.md lists them; further ones may come."
        ),
    ]
    protect: Annotated[
        str | UnsetType,
        Meta(
            description="What the region did to its siblings beyond keeping them off the device, "
            "as `--protect` says. `gate`: nothing. `pin`: they were kept off the reserved CPUs. "
            "`freeze`: they stood still. Further values may come. Absent: the controller is of an "
            "earlier version."
        ),
    ] = UNSET
    granted_ns: Annotated[
        Count | UnsetType,
        Meta(
            description="When the region was granted the device: nanoseconds of CLOCK_MONOTONIC. "
            "From then until `released_ns` no other process than `holder_pids` may submit. Absent: "
            "it was granted none."
        ),
    ] = UNSET
    released_ns: Annotated[
        Count | UnsetType,
        Meta(
            description="Until when that was so: the time just before the device was reopened, or "
            "that of the region's end where nobody can vouch for what came after it. Absent like "
            "`granted_ns`, or if nobody saw its end."
        ),
    ] = UNSET
    holder_pids: Annotated[
        list[int] | UnsetType,
        Meta(
            description="The processes that could submit meanwhile, as the controller numbers "
            "them: the holder and its descendants that had work on the device to do, ended ones "
            "included. Absent like `granted_ns`."
        ),
    ] = UNSET
    earlier_holds: Annotated[
        list[EarlierHold] | UnsetType,
        Meta(
            description="Those that it had before that of `hold_id`, and yielded because it stood "
            "idle while others waited; between two of them it had no protection. `hold_id`, "
            "`granted_ns`, `released_ns`, `holder_pids` are the last one's. Absent: it had none."
        ),
    ] = UNSET
    wait_s: Annotated[
        Seconds,
        Meta(
            description="Seconds from the request to the grant (exclusive or not), the handshake "
            "included; for a region that ended ungranted, to its end. Of all its requests together."
        ),
    ]
    hold_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds from the grant (exclusive or not) to the region's end, or to "
            "where it yielded; of all its holds together. Absent: it ended ungranted, or nobody "
            "saw its end."
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
    limit_wait_s: Annotated[Seconds | UnsetType, Meta(description=LIMIT_MEANING)] = UNSET
    work_at_end: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether work of the holder was not seen to complete within 0.1 s of the "
            "hold's end. Absent: there was no hold."
        ),
    ] = UNSET
    timing: Annotated[
        Timing | UnsetType,
        Meta(
            description="Of the region's process; of all its processes, for a whole command. "
            "Absent: nobody saw its end, or the controller is of an earlier version."
        ),
    ] = UNSET
    foreign_processes: Annotated[
        ForeignProcesses | UnsetType,
        Meta(
            description="Absent: there was no hold, or nobody can ask the device, as those of a "
            "CPU."
        ),
    ] = UNSET

    oom_while_shared: Annotated[list[MemoryRefusal] | UnsetType, Meta(description=OOM_MEANING)] = (
        UNSET
    )


# What a type can't say: a record is exclusive, or it says why not.
CONSISTENCY: Final[dict[str, Any]] = {
    "if": {"properties": {"exclusive": {"const": True}}},
    "then": {"properties": {"reasons": {"maxItems": 0}}, "required": ["hold_id", "hold_s"]},
    "else": {"properties": {"reasons": {"minItems": 1}}},
}
