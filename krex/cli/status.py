# SPDX-License-Identifier: Apache-2.0
"""`krex status`: what the controller knows, as tables or as its own JSON object."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from krex import paths
from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED, ControllerError
from krex.launch.channel import Channel
from krex.status import Applicant, Command, Controller, Device, Simulator, Status, nothing


@click.command("status", context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object instead.")
def command(as_json: bool) -> None:
    """Show devices with their gate, holder and queue, and the running commands.

    The exit status is 1 if no controller runs.
    """
    socket = paths.socket_path()
    status = ask(socket)
    if as_json:
        shown = msgspec.to_builtins(nothing()) if status is None else status
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    elif status is None:
        click.echo(
            f"krex: no controller runs at {socket}; `krex run` starts one, so does `krex serve`",
            err=True,
        )
    else:
        click.echo("\n".join(render(_understood(status))))
    click.get_current_context().exit(0 if status else EXIT_FAILED)


def ask(socket: str) -> dict[str, Any] | None:
    """The controller's status object; None if none runs. Raises ControllerError on nonsense."""
    try:
        channel = Channel(socket)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        raise ControllerError(
            f"cannot connect to {socket}: {error.strerror or error}", "run `krex serve` to see why"
        ) from None
    try:
        channel.send({"op": "status"})
        message = channel.receive()[0]
    finally:
        channel.close()
    status = message.get("status") if message else None
    if not isinstance(status, dict):
        text = message.get("message", "not a status") if message else "nothing"
        raise ControllerError(f"the controller answers: {text}", "run `krex serve` to see why")
    return status


def _understood(status: dict[str, Any]) -> Status:
    """The object in the types of this version. Raises ControllerError if it doesn't fit them."""
    try:
        return msgspec.convert(status, Status)
    except msgspec.ValidationError as error:
        raise ControllerError(
            f"the controller is of another version: {error}",
            "`krex status --json` shows its answer as it is",
        ) from None


def render(status: Status) -> list[str]:
    """The lines for people."""
    lines = [_controller(status.controller)] if status.controller else []
    if status.simulator:
        lines.append(_simulator(status.simulator))
    for device in status.devices:
        lines += ["", *_device(device)]
    return [*lines, "", *(_commands(status.commands) if status.commands else ["no commands"])]


def _controller(controller: Controller) -> str:
    up = _duration(time.time() - controller.started_unix_s)
    return f"controller {controller.version} pid {controller.pid}, {up} up, {controller.socket}"


def _simulator(simulator: Simulator) -> str:
    state = f"pid {simulator.pid}" if simulator.pid else "ended"
    return f"simulated devices: {simulator.devices}, {state}, log {simulator.log}"


def _device(device: Device) -> list[str]:
    slots = f"{device.slots_used} of {device.slots} slots taken"
    lines = [f"{device.device}: gate {device.gate} (epoch {device.epoch}), {slots}"]
    if (hold := device.hold) is not None:
        lines.append(f"  held by {hold.command} for {_duration(hold.since_s)}, {hold.marks} marks")
    for place, waiter in enumerate(device.queue, 1):
        waited = _duration(waiter.waited_s)
        lines.append(f"  waiting, place {place}: {waiter.command} pid {waiter.pid}, {waited}")
    lines += map(_applicant, device.admission)
    rows = [
        (str(p.pid), p.command, p.state, "clean" if p.clean else "dirty", str(p.submissions))
        for p in device.processes
    ]
    if rows:
        lines += _table(("PID", "COMMAND", "STATE", "DEVICE", "SUBMISSIONS"), rows)
    return lines


def _applicant(applicant: Applicant) -> str:
    what = f"{applicant.command} {shlex.join(applicant.argv)[:60]}"
    line = f"  to start, place {applicant.place}: {what}, {_duration(applicant.waited_s)}"
    if applicant.alone:
        line += ", to be alone"
    if applicant.expected_wait_s is not None:
        line += f", expected to wait {_duration(applicant.expected_wait_s)} more"
    return line


def _commands(commands: list[Command]) -> list[str]:
    rows = [
        (c.command, c.tenant, c.device, str(c.root_pid or "-"),
         ("frozen, " if c.frozen else "") + _duration(c.frozen_s), shlex.join(c.argv)[:60])
        for c in commands
    ]  # fmt: skip
    return _table(("COMMAND", "TENANT", "DEVICE", "PID", "FROZEN", "ARGV"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, _ = divmod(int(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
