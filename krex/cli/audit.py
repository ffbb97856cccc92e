# SPDX-License-Identifier: Apache-2.0
"""`krex audit`: what a report says against its numbers."""

from __future__ import annotations

import click
import msgspec

from krex.audit import SEVERITIES
from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED


@click.command("audit", context_settings=CONTEXT)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--reported",
    multiple=True,
    metavar="NAME=SECONDS",
    help="What the harness reports for the regions of that name, or a JSON file of such; again for "
    "more.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit with status 1 if there is a finding so severe, or more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object.")
def command(
    files: tuple[str, ...], reported: tuple[str, ...], fail_on: str | None, as_json: bool
) -> None:
    """Turn records of regions into findings, each with a severity and what to do.

    FILES are what `krex run --report` wrote. docs/audit.md lists the findings. The exit status is 2
    if a file can't be read, or if no region has the name of a number that is reported.
    """
    from krex import audit

    numbers = {n: s for word in reported for n, s in audit.read_reported(word).items()}
    report = audit.audit([record for path in files for record in audit.read(path)], numbers)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        click.echo("\n".join(audit.render(report)))
    failed = fail_on is not None and report.reaches(fail_on)
    click.get_current_context().exit(EXIT_FAILED if failed else 0)
