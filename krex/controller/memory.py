# SPDX-License-Identifier: Apache-2.0
"""A device's memory that ran out for a command while others had some of it.

A correct program then looks wrong, and would not have failed alone: whoever judges it must be told.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from krex.controller import strangers
from krex.controller.placement import size
from krex.controller.residents import ANSWER_S, Resident
from krex.controller.waiting import Abort, until
from krex.record import MemoryHolder, MemoryRefusal

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.device import Device
    from krex.controller.mark import Process

# Of one command: some programs try again and again.
MOST = 16


async def refused(process: "Process", wanted: int) -> None:
    """Note that a process was refused so many bytes, unless nobody else was there.

    Its command is told of the first one, with what the device says that the others hold.
    """
    command, device = process.command, process.device
    if len(command.refusals) >= MOST:
        return
    question = device.residents.ask(device.known())
    with contextlib.suppress(Abort):
        await until(question.done, ANSWER_S, "")
    residents = question.residents if question.done() else None
    if others := _others(device, command, residents):
        found = MemoryRefusal(pid=process.pid, wanted_bytes=wanted, others=others)
        command.refusals.append(found)
        if len(command.refusals) == 1:
            command.out_of_memory(describe(found, device.key))


def describe(found: MemoryRefusal, device: str) -> str:
    """One line for people."""
    return (
        f"{size(found.wanted_bytes)} of memory on {device} were refused to process {found.pid} "
        f"while others use it: {', '.join(map(_describe, found.others))}; it may not fail alone, "
        "or with --mem"
    )


def _describe(other: MemoryHolder) -> str:
    who = other.command or f"{other.processes} processes without KREX"
    what = [f"has {size(other.held_bytes)}"] if other.held_bytes is not UNSET else []
    what += [f"reserved {size(other.reserved_bytes)}"] if other.reserved_bytes else []
    return f"{who} ({', '.join(what)})" if what else who


def _others(
    device: "Device", own: "Command", residents: Sequence[Resident] | None
) -> list[MemoryHolder]:
    """Who else may have memory there: commands, then all that belong to none."""
    owners = {p.pid: p.command for p in device.processes.values()}
    there = [r for r in residents or () if r.pid not in device.departing]
    owned = [(r, owners.get(r.pid) or strangers.owner(device, r.pid)) for r in there]
    held: Counter[Command | None] = Counter()
    for resident, command in owned:
        held[command] += resident.held_bytes or 0
    commands = {*owners.values(), *(c for _, c in owned if c)}
    commands |= {c for c in device.admission.commands if device.admission.reserved(c)}
    found = [
        MemoryHolder(
            command=command.id,
            processes=len(command.processes()),
            reserved_bytes=device.admission.reserved(command),
            held_bytes=_held(held, command, residents),
        )
        for command in sorted(commands - {own}, key=lambda c: c.id)
    ]
    if foreign := sum(command is None for _, command in owned):
        has = _held(held, None, residents)
        found.append(MemoryHolder(command="", processes=foreign, reserved_bytes=0, held_bytes=has))
    return found


def _held(
    held: "Counter[Command | None]", of: "Command | None", residents: Sequence[Resident] | None
) -> int | UnsetType:
    if residents is None or any(resident.held_bytes is None for resident in residents):
        return UNSET
    return held[of]
