# SPDX-License-Identifier: Apache-2.0
"""Processes that use a device past KREX: whose they are, why it does not have them, what to do."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from krex.protect.freezer import cgroup_of
from krex.protect.mappings import has_loaded
from krex.protect.processes import above
from krex.record import ForeignProcess

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.device import Device

OUR_LIBRARY = "libkrex.so"


def owner(device: "Device", pid: int) -> "Command | None":
    """The command that a process belongs to, by its group or by its ancestors."""
    group = cgroup_of(pid) if pid else None
    inside = (group, *group.parents) if group else ()
    for command in device.commands.values():
        if command.group and command.group.path in inside:
            return command
    line = {pid, *above(pid)} if pid else set()
    return next((c for c in device.commands.values() if c.root_pid in line), None)


def describe(pid: int, command: "Command | None") -> ForeignProcess:
    """For a record. `command`: its owner."""
    return ForeignProcess(
        pid=pid, name=_name(pid) or UNSET, command=command.id if command else UNSET
    )


def tell_unregistered(device: "Device", command: "Command", pid: int) -> None:
    """Say on its command's stderr, once, that a process of it has no protection, and why."""
    what = "no region beside it is exclusive"
    if not has_loaded(pid, OUR_LIBRARY):
        why = "KREX's library is not in it (env -i, sudo, a setuid or a static program)"
        mend = "keep LD_PRELOAD and KREX_* in its environment"
    elif command.device is not device:
        why = f"the command was admitted to {command.device.key}"
        mend = "use that device, or start it with --device"
    else:
        why = "it reaches the driver past KREX's library (dlmopen, RTLD_DEEPBIND), or cannot join"
        mend = "run it alone (--exclusive command)"
    _tell(command, pid, f"uses {device.key} unprotected: {why}; {what}: {mend}")


def tell_bypassing(device: "Device", command: "Command", pid: int) -> None:
    """Say so of one that is registered, and reaches the device by another way as well."""
    why = "also past KREX's library (dlmopen, RTLD_DEEPBIND)"
    what = "regions beside that are not exclusive: run it alone (--exclusive command)"
    _tell(command, pid, f"reaches {device.key} {why}; {what}")


def _tell(command: "Command", pid: int, text: str) -> None:
    if pid not in command.told:
        command.told.add(pid)
        command.warn(f"process {pid} ({_name(pid) or '?'}) of this command {text}")


def _name(pid: int) -> str:
    """Empty: it can't be seen."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() if pid else ""
    return ""
