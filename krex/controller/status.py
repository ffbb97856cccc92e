# SPDX-License-Identifier: Apache-2.0
"""What `krex status` is told: the controller's state as the documented object."""

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import krex
from krex import status
from krex.native import lib

if TYPE_CHECKING:
    from krex.controller.admission import Applicant
    from krex.controller.command import Command
    from krex.controller.device import Device
    from krex.controller.hold import Hold
    from krex.controller.mark import Mark, Process
    from krex.controller.server import Server
    from krex.controller.standing import Standing

# The answer is one packet, and a socket's buffer takes 200 KiB of it: 64 commands and the
# processes of a full board. More commands share what those 64 have.
ARGV_BYTES = 1024
ALL_ARGV_BYTES = 64 * ARGV_BYTES


def describe(server: "Server") -> status.Status:
    """Take the whole picture at once."""
    now = time.monotonic()
    waiting = sum(len(device.admission.waiting) for device in server.devices.values())
    limit = min(ARGV_BYTES, ALL_ARGV_BYTES // (len(server.commands) + waiting + 1))
    return status.Status(
        schema=status.SCHEMA,
        schema_version=status.SCHEMA_VERSION,
        controller=status.Controller(
            pid=os.getpid(),
            version=krex.__version__,
            socket=str(server.path),
            started_unix_s=server.started,
        ),
        simulator=_simulator(server),
        devices=[_device(device, now, limit) for device in server.devices.values()],
        commands=[_command(command, limit) for command in server.commands.values()],
    )


def _simulator(server: "Server") -> status.Simulator | None:
    simulator = server.simulated
    if not simulator or not simulator.setup:
        return None
    return status.Simulator(
        pid=simulator.pid,
        socket=str(simulator.socket),
        devices=simulator.setup.devices,
        log=str(simulator.setup.log),
    )


def _device(device: "Device", now: float, limit: int) -> status.Device:
    epoch = device.board.epoch()
    return status.Device(
        device=device.key,
        gate="closed" if epoch & 1 else "open",
        epoch=epoch,
        slots=device.admission.slots,
        slots_used=device.admission.used,
        hold=_hold(device.hold, now) if device.hold else None,
        queue=[_waiter(mark, now) for mark in device.queue],
        admission=[_applicant(*each, now, limit) for each in device.admission.standings()],
        processes=[_process(process) for process in device.processes.values()],
    )


def _hold(hold: "Hold", now: float) -> status.Hold:
    first = hold.first
    return status.Hold(
        hold_id=hold.id,
        command=first.command.id,
        since_s=now - first.granted if first.granted else 0.0,
        marks=len(hold.marks),
    )


def _waiter(mark: "Mark", now: float) -> status.Waiter:
    return status.Waiter(
        command=mark.command.id, pid=mark.record.pid, waited_s=now - mark.requested
    )


def _applicant(
    applicant: "Applicant", standing: "Standing", now: float, limit: int
) -> status.Applicant:
    command = applicant.command
    return status.Applicant(
        command=command.id,
        tenant=command.tenant,
        argv=list(_cut(command.argv, limit)),
        alone=applicant.alone,
        place=standing.place,
        waited_s=now - applicant.requested,
        expected_wait_s=standing.expected_wait_s,
    )


def _process(process: "Process") -> status.Process:
    board, block = process.device.board.c, process.block
    return status.Process(
        pid=process.pid,
        command=process.command.id,
        state="live",
        clean=bool(lib.krex_block_clean(board, block)),
        submissions=lib.krex_block_submissions(board, block),
    )


def _command(command: "Command", limit: int) -> status.Command:
    group = command.group
    return status.Command(
        command=command.id,
        tenant=command.tenant,
        argv=list(_cut(command.argv, limit)),
        device=command.device.key,
        root_pid=command.root_pid,
        frozen=bool(group and group.frozen),
        frozen_s=group.stillness().total_s if group else 0.0,
        cgroup=str(group.path) if group else None,
    )


def _cut(argv: list[str], limit: int) -> Iterable[str]:
    """The words that fit into `limit` bytes; the first that does not ends in three dots."""
    left = limit
    for word in argv:
        data = word.encode("utf-8", "replace")
        if len(data) > left:
            yield data[:left].decode("utf-8", "ignore") + "..."
            return
        yield word
        left -= len(data) + 1


def conceal(picture: status.Status, server: "Server", uid: int) -> None:
    """Take out the command lines of others than this user: the machine's controller answers all."""
    waiting = (a.command for d in server.devices.values() for a in d.admission.waiting)
    others = {c.id for c in [*server.commands.values(), *waiting] if uid not in (0, c.uid)}
    shown: list[status.Command | status.Applicant] = [*picture.commands]
    shown += (a for d in picture.devices for a in d.admission)
    for one in shown:
        if one.command in others:
            one.argv = []
