# SPDX-License-Identifier: Apache-2.0
"""`krex explain`: what would be marked in a command, and why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import click
import msgspec

from krex.cli.group import CONTEXT
from krex.errors import UsageError
from krex.presets import explain as explaining
from krex.presets import table


@click.command(
    "explain",
    context_settings=CONTEXT | {"allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
    epilog="Example: krex explain -- python bench.py",
)
@click.option("--preset", "name", metavar="NAME", help="Say what is marked of this harness.")
@click.option("--list", "as_list", is_flag=True, help="List the known harnesses.")
@click.option("--presets", "file", metavar="FILE", help="Know those of FILE too, as `krex run`.")
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object instead.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    name: str | None, as_list: bool, file: str | None, as_json: bool, command: tuple[str, ...]
) -> None:
    """Say what would be marked in COMMAND, and why, without running it.

    It reads the command line, KREX_REGION, and the imports in the source of a Python program.
    """
    if sum([name is not None, as_list, bool(command)]) != 1:
        raise click.UsageError("Give one of: a command after --, --preset NAME, --list.")
    presets = table.load(file)
    if as_list:
        _print([explaining.describe(*item) for item in presets.items()], as_json, _rows)
    elif name is not None:
        _print(_described(name, presets), as_json, _harness)
    else:
        _print(_explained(command, presets), as_json, _explanation)


def _described(name: str, presets: dict[str, table.Preset]) -> explaining.Harness:
    if name not in presets:
        raise UsageError(f"there is no preset {name}", "`krex explain --list` shows them")
    return explaining.describe(name, presets[name])


def _explained(
    command: tuple[str, ...], presets: dict[str, table.Preset]
) -> explaining.Explanation:
    try:
        return explaining.explain(command, os.environ.get("KREX_REGION", ""), presets)
    except ValueError as error:
        raise UsageError(f"KREX_REGION: {error}", "correct or unset it") from None


def _print(found: Any, as_json: bool, render: Any) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo("\n".join(render(found)))


def _rows(harnesses: Iterable[explaining.Harness]) -> Iterator[str]:
    for harness in harnesses:
        yield f"{harness.name:17} {harness.status:14} {harness.title}"


def _harness(harness: explaining.Harness) -> Iterator[str]:
    checked = f"; names as in {harness.checked}" if harness.checked else ""
    yield f"{harness.title} ({harness.name}; {harness.status}{checked})"
    if harness.because:
        yield f"  recognised: {harness.because}"
    yield f"  {harness.why}"
    for target in harness.marked:
        yield f"  marked: {target}"
    if harness.advice:
        yield f"  set: {harness.advice}"
    for note in harness.notes:
        yield f"  note: {note}"


def _explanation(found: explaining.Explanation) -> Iterator[str]:
    yield f"KREX_REGION={found.region}"
    yield from found.verdict
    for text in found.obstacles:
        yield f"But {text}."
    for harness in found.harnesses:
        yield ""
        yield from _harness(harness)
