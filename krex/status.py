# SPDX-License-Identifier: Apache-2.0
"""The object of `krex status --json` and its versioned schema; docs/status.md is its reference.

Every key is always there; null means that there is none. Within one schema version keys are only
added, so a reader ignores keys that it does not know.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from krex.timing_record import Count, Seconds

SCHEMA: Final = "krex.status"
SCHEMA_VERSION: Final = 1


class Controller(Struct, kw_only=True):
    """The controller that answered."""

    pid: Annotated[int, Meta(description="Its process.")]
    version: Annotated[str, Meta(description="The version of KREX that it runs.")]
    socket: Annotated[str, Meta(description="The path of the socket on which it serves.")]
    started_unix_s: Annotated[Seconds, Meta(description="When it started: seconds since 1970.")]


class Hold(Struct, kw_only=True):
    """The region that has the device, or whose turn it is and for which it is being cleared."""

    hold_id: Annotated[str, Meta(description="The `hold_id` that its records will carry.")]
    command: Annotated[str, Meta(description="The command that it belongs to.")]
    since_s: Annotated[Seconds, Meta(description="Seconds since the grant; 0 before it.")]
    marks: Annotated[
        Count, Meta(description="Marks of the process and its descendants that share the hold.")
    ]


class Waiter(Struct, kw_only=True):
    """A region that waits for its turn."""

    command: Annotated[str, Meta(description="The command that it belongs to.")]
    pid: Annotated[int, Meta(description="The process that asks for it.")]
    waited_s: Annotated[Seconds, Meta(description="Seconds since it asked.")]


class Applicant(Struct, kw_only=True):
    """A command that has not started yet: it waits to be let in."""

    command: Annotated[str, Meta(description="Its name, as in a region record. Opaque.")]
    tenant: Annotated[str, Meta(description="Whose it is, as in `commands`.")]
    argv: Annotated[list[str], Meta(description="Its command line, cut where it is long.")]
    alone: Annotated[
        bool,
        Meta(description="Whether it waits to have the device alone (`--exclusive command`)."),
    ]
    place: Annotated[Count, Meta(description="Its place in the queue, from 1.")]
    waited_s: Annotated[Seconds, Meta(description="Seconds since it asked.")]
    expected_wait_s: Annotated[
        Seconds | None,
        Meta(description="Seconds until it starts, as far as can be told. Null: that is unknown."),
    ]


class Process(Struct, kw_only=True):
    """A process that is registered on the device."""

    pid: Annotated[int, Meta(description="As the controller numbers it.")]
    command: Annotated[str, Meta(description="The command that it belongs to.")]
    state: Annotated[
        str,
        Meta(description="`live`: registered, and not known to have ended. Others may come."),
    ]
    clean: Annotated[
        bool, Meta(description="Whether it has submitted nothing since its last drain.")
    ]
    submissions: Annotated[
        Count, Meta(description="How many driver calls of it have put work on the device so far.")
    ]


class Device(Struct, kw_only=True):
    """A device that some command has used since the controller started."""

    device: Annotated[str, Meta(description="Its key, as in a region record.")]
    gate: Annotated[
        Literal["open", "closed"],
        Meta(description="`closed`: only the holder may submit."),
    ]
    epoch: Annotated[
        Count, Meta(description="The gate's word: one more at each change, odd while closed.")
    ]
    slots: Annotated[
        Count, Meta(description="How many commands may run on it at once (`krex serve --slots`).")
    ]
    slots_used: Annotated[
        Count,
        Meta(
            description="How many slots are taken. Trees that only have the library preloaded "
            "take theirs without asking, so it may be more than there are."
        ),
    ]
    hold: Annotated[Hold | None, Meta(description="Null: no region has the device.")]
    queue: Annotated[
        list[Waiter], Meta(description="Regions, in the order in which they will be served.")
    ]
    admission: Annotated[
        list[Applicant], Meta(description="Commands, in the order in which they will start.")
    ]
    processes: Annotated[list[Process], Meta(description="In no order.")]


class Command(Struct, kw_only=True):
    """A `krex run`, or a process tree that only has the library preloaded."""

    command: Annotated[str, Meta(description="Its name, as in a region record. Opaque.")]
    tenant: Annotated[
        str, Meta(description="Whose it is: `--tenant`, else the user id in decimal.")
    ]
    argv: Annotated[
        list[str],
        Meta(
            description="Its command line, cut where it is long; empty if not by `krex run`, or if "
            "it is another user's."
        ),
    ]
    device: Annotated[str, Meta(description="The key of the device that it runs on.")]
    root_pid: Annotated[int, Meta(description="Its first process; 0 until that has started.")]
    frozen: Annotated[bool, Meta(description="Whether it stands still at this moment.")]
    frozen_s: Annotated[
        Seconds,
        Meta(description="Seconds for which it was frozen so far."),
    ]
    cgroup: Annotated[
        str | None, Meta(description="Its cgroup v2 directory. Null: it cannot be frozen.")
    ]


class Simulator(Struct, kw_only=True):
    """The process of the simulated devices (`krex run --sim`)."""

    pid: Annotated[int, Meta(description="Its process; 0: it ended, and starts at the next use.")]
    socket: Annotated[str, Meta(description="The path of the socket on which it serves.")]
    devices: Annotated[Count, Meta(description="How many devices: `sim:0` and so on.")]
    log: Annotated[str, Meta(description="The path of its log of intervals.")]


class Status(Struct, kw_only=True):
    """What the controller knows at one moment."""

    schema: Annotated[Literal["krex.status"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    controller: Annotated[Controller | None, Meta(description="Null: no controller runs.")]
    simulator: Annotated[
        Simulator | None, Meta(description="Null: no command has asked for simulated devices.")
    ]
    devices: Annotated[list[Device], Meta(description="Empty without a controller.")]
    commands: Annotated[
        list[Command], Meta(description="The commands that run. Empty without a controller.")
    ]


def nothing() -> Status:
    """The answer where no controller runs."""
    return Status(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        controller=None,
        simulator=None,
        devices=[],
        commands=[],
    )
