# SPDX-License-Identifier: Apache-2.0
"""The click group: subcommands are imported when they are called, never for `krex --help`."""

from __future__ import annotations

import importlib

import click

from krex.cli import COMMANDS

CONTEXT = {"help_option_names": ["-h", "--help"]}


class LazyGroup(click.Group):
    """A group whose subcommands stand in a table and are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a subcommand and return its `command`."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table, so that help imports no subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"krex {version('krex-gpu')}")
    except PackageNotFoundError:
        click.echo("krex (not installed: running from a source tree)")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings=CONTEXT,
    epilog="Start with: krex run -- python bench.py.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def group() -> None:
    """Share a GPU between benchmarking commands; each is alone on it while it measures."""
