# SPDX-License-Identifier: Apache-2.0
"""`krex lib-path`: for `LD_PRELOAD=$(krex lib-path)` and `cc -I$(krex lib-path --include)`."""

from __future__ import annotations

import click

from krex import paths
from krex.cli.group import CONTEXT


@click.command("lib-path", context_settings=CONTEXT)
@click.option("--include", is_flag=True, help="Print the directory that holds krex.h instead.")
def command(include: bool) -> None:
    """Print the path of the preload library.

    LD_PRELOAD=$(krex lib-path) python bench.py puts a command beside `krex run` commands without
    changing how it is started: it is gated and recorded, but cannot be frozen.
    """
    click.echo(paths.include_dir() if include else paths.library_path())
