# SPDX-License-Identifier: Apache-2.0
"""A device's memory that ran out for a command while others had some of it.

A correct program then looks wrong, and would not have failed alone: whoever judges it must be told.
"""

from typing import TYPE_CHECKING

from krex.controller.placement import size
from krex.record import MemoryHolder, MemoryRefusal

if TYPE_CHECKING:
    from krex.controller.device import Device
    from krex.controller.mark import Process

# Of one command: some programs try again and again.
MOST = 16


def refused(process: "Process", wanted: int) -> MemoryRefusal | None:
    """Note that a process was refused so many bytes. None: nobody else was there, or known before.

    Returns the first of the command only, of which it is to be told.
    """
    command = process.command
    others = _others(process.device, process)
    if not others or len(command.refusals) >= MOST:
        return None
    found = MemoryRefusal(pid=process.pid, wanted_bytes=wanted, others=others)
    command.refusals.append(found)
    return found if len(command.refusals) == 1 else None


def describe(found: MemoryRefusal, device: str) -> str:
    """One line for people."""
    others = ", ".join(
        f"{other.command} (reserved {size(other.reserved_bytes)})"
        if other.reserved_bytes
        else other.command
        for other in found.others
    )
    return (
        f"{size(found.wanted_bytes)} of memory on {device} were refused to process {found.pid} "
        f"while others use it: {others}; it may not fail alone, or with --mem"
    )


def _others(device: "Device", process: "Process") -> list[MemoryHolder]:
    """The other commands that may have memory there."""
    commands = {p.command for p in device.processes.values()} - {process.command}
    commands |= {c for c in device.admission.commands if device.admission.reserved(c)}
    commands.discard(process.command)
    return [
        MemoryHolder(
            command=command.id,
            processes=len(command.processes()),
            reserved_bytes=device.admission.reserved(command),
        )
        for command in sorted(commands, key=lambda c: c.id)
    ]
