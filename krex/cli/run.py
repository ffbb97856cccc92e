# SPDX-License-Identifier: Apache-2.0
"""`krex run`, as click sees it: help, usage errors, suggestions. The table is the source."""

from __future__ import annotations

import re
from typing import Any

import click

from krex.cli.group import CONTEXT
from krex.launch.options import OPTIONS, READERS, Option, RunOptions


def check_seconds(_: click.Context, __: click.Parameter, value: Any) -> float | None:
    """A click callback: a finite number of seconds, not negative; else a usage error."""
    return None if value is None else _read("seconds", str(value))


def _read(kind: str, text: str) -> Any:
    read, what = READERS[kind]
    try:
        return read(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not {what}{_meant(kind, text)}") from None


def _meant(kind: str, text: str) -> str:
    """The size that was probably meant by 8G or 8gb. G may be 10^9 or 2^30, so it is not taken."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt])(?:i?b)?", text, re.IGNORECASE)
    if kind != "size" or not found:
        return ""
    return f"; did you mean {found[1]}{found[2].upper()}iB?"


def _reader(kind: str) -> Any:
    return lambda _, __, value: None if value is None else _read(kind, str(value))


def _click_option(option: Option) -> click.Option:
    common: dict[str, Any] = {"help": option.help}
    if option.kind == "flag":
        return click.Option([*option.flags, option.name], is_flag=True, **common)
    if option.kind == "count":
        return click.Option([*option.flags, option.name], count=True, **common)
    common |= {"metavar": option.metavar, "default": option.default}
    common["show_default"] = option.default is not None
    common["multiple"] = option.kind == "list"
    if option.kind == "choice":
        common["type"] = click.Choice(option.choices)
    if option.kind in READERS:
        common["callback"] = _reader(option.kind)
    return click.Option([*option.flags, option.name], **common)


def _run(command: tuple[str, ...], **values: Any) -> None:
    from krex.launch.session import run

    click.get_current_context().exit(run(RunOptions(command, **values)))


command = click.Command(
    "run",
    callback=_run,
    params=[
        *map(_click_option, OPTIONS),
        click.Argument(["command"], nargs=-1, required=True, type=click.UNPROCESSED),
    ],
    # Options after the command belong to the command.
    context_settings=CONTEXT | {"allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
    help=(
        "Run COMMAND, unchanged; while one of its timed regions runs, it has the device alone.\n\n"
        "stdout is the command's. The exit status is the command's, or 128+N if signal N ended it; "
        "125 if krex failed (or with --require, if a region was not exclusive), 126 if COMMAND "
        "cannot be executed, 127 if it does not exist.\n\n"
        "KREX_REGION chooses the regions: 'auto' (the default; see `krex explain`), or a list of "
        "'call:MODULE.FUNCTION', 'nvtx:RANGE', 'events', 'whole' (the command is one region); or "
        "'none'. KREX_DISABLE=1 runs the command as if krex were not there."
    ),
    epilog="Example: krex run --report regions.jsonl -- python bench.py --size 4096",
)
