# SPDX-License-Identifier: Apache-2.0
"""`krex sim`: the model of the simulated devices, and the check of what they saw."""

from __future__ import annotations

import click
import msgspec

from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED


@click.group("sim", context_settings=CONTEXT)
def command() -> None:
    """Simulated devices: their model, and the check of what they saw.

    `krex run --sim` runs a command on them.
    """


@command.command("check", context_settings=CONTEXT)
@click.argument("log", type=click.Path(exists=True, dir_okay=False))
@click.argument("reports", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object.")
def check(log: str, reports: tuple[str, ...], as_json: bool) -> None:
    """Hold regions' records against what was on the simulated devices.

    LOG is what `krex run --sim-log` wrote, REPORTS are what `krex run --report` wrote. The exit
    status is 0 if no process but a region's own used the device in an exclusive region, 1 if one
    did or the log is not whole, 2 if a file can't be read or the reports have no region on a
    simulated device.
    """
    from krex.sim import check as checking
    from krex.sim.log import read

    records = checking.read_reports(reports)
    result = checking.check(read(log), records)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2))
    else:
        click.echo("\n".join(checking.render(result)))
    click.get_current_context().exit(0 if result.is_clean else EXIT_FAILED)


@command.command("model", context_settings=CONTEXT)
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--flat", is_flag=True, help="In the form that krex-sim-device reads.")
def model(file: str | None, flat: bool) -> None:
    """Print the model of the simulated devices, to start one's own from; or check FILE."""
    from krex.sim import model as models

    path = file or models.DEFAULT
    found = models.read(path)
    click.echo(models.flatten(found) if flat else models.text(path), nl=False)
