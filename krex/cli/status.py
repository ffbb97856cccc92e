# SPDX-License-Identifier: Apache-2.0
"""`krex status`: what the controller knows, as tables or as its own JSON object."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from typing import Any

import click

from krex import paths
from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED, ControllerError
from krex.launch.channel import Channel

SCHEMA = "krex.status"
SCHEMA_VERSION = 1


@click.command("status", context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object instead.")
def command(as_json: bool) -> None:
    """Show devices with their gate, holder and queue, and the running commands.

    The exit status is 1 if no controller runs.
    """
    socket = paths.socket_path()
    status = ask(socket)
    if as_json:
        click.echo(json.dumps(status or _nothing(), indent=2, ensure_ascii=False))
    elif status is None:
        click.echo(
            f"krex: no controller runs at {socket}; `krex run` starts one, so does `krex serve`",
            err=True,
        )
    else:
        click.echo("\n".join(render(status)))
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


def render(status: dict[str, Any]) -> list[str]:
    """The lines for people."""
    controller = status.get("controller") or {}
    up = _duration(time.time() - controller.get("started_unix_s", time.time()))
    version, pid = controller.get("version", ""), controller.get("pid")
    lines = [f"controller {version} pid {pid}, {up} up, {controller.get('socket')}"]
    for device in status.get("devices", []):
        lines += ["", *_device(device)]
    commands = status.get("commands", [])
    lines += ["", *_commands(commands)] if commands else ["", "no commands"]
    return lines


def _device(device: dict[str, Any]) -> list[str]:
    lines = [f"{device['device']}: gate {device['gate']} (epoch {device['epoch']})"]
    hold = device.get("hold")
    if hold:
        since = _duration(hold["since_s"])
        lines.append(f"  held by {hold['command']} for {since}, {hold['marks']} marks")
    for place, waiter in enumerate(device.get("queue", []), 1):
        waited = _duration(waiter["waited_s"])
        lines.append(f"  waiting, place {place}: {waiter['command']} pid {waiter['pid']}, {waited}")
    rows = [
        (str(p["pid"]), p["command"], p["state"], "clean" if p["clean"] else "dirty",
         str(p["submissions"]))
        for p in device.get("processes", [])
    ]  # fmt: skip
    if rows:
        lines += _table(("PID", "COMMAND", "STATE", "DEVICE", "SUBMISSIONS"), rows)
    return lines


def _commands(commands: list[dict[str, Any]]) -> list[str]:
    rows = [
        (c["command"], str(c["tenant"]), c["device"] or "-", str(c["root_pid"] or "-"),
         ("frozen, " if c["frozen"] else "") + _duration(c["frozen_s"]), shlex.join(c["argv"])[:60])
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


def _nothing() -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "controller": None,
        "devices": [],
        "commands": [],
    }
