# SPDX-License-Identifier: Apache-2.0
"""`krex doctor`: what KREX needs, tried out on this machine."""

from __future__ import annotations

import click
import msgspec

from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED


@click.command("doctor", context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object instead.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Give each probe this long. All of them run at once.",
)
def command(as_json: bool, timeout: float) -> None:
    """Try out everything that KREX needs, and say how to get what is missing.

    The exit status is 1 if something needed is missing. Nothing is changed and nothing is left
    behind; a controller that runs keeps running.
    """
    from krex.doctor.examine import examine
    from krex.doctor.report import render

    report = examine(timeout)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        click.echo("\n".join(render(report)))
    click.get_current_context().exit(0 if report.ok else EXIT_FAILED)
