# SPDX-License-Identifier: Apache-2.0
"""`krex serve`: the controller in the foreground. `krex run` starts one by itself if it must."""

from __future__ import annotations

import click

from krex import paths
from krex.cli.group import CONTEXT
from krex.cli.run import check_seconds


@click.command("serve", context_settings=CONTEXT)
@click.option(
    "--idle-exit",
    callback=check_seconds,
    metavar="SECONDS",
    help="Exit this long after the last command ended. Default: never.",
)
def command(idle_exit: float | None) -> None:
    """Run the controller in the foreground.

    One serves all commands of a user. It listens on KREX_SOCKET, else on krex/control.sock in
    XDG_RUNTIME_DIR, else on /tmp/krex-UID/control.sock.
    """
    from krex.controller import server

    socket = paths.socket_path()
    paths.prepare_socket_dir(socket)
    click.get_current_context().exit(server.main(socket, idle_exit) or 0)
