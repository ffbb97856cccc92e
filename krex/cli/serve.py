# SPDX-License-Identifier: Apache-2.0
"""`krex serve`: the controller in the foreground. `krex run` starts one by itself if it must."""

from __future__ import annotations

import click

from krex import paths
from krex.cli.group import CONTEXT
from krex.cli.run import check_seconds
from krex.controller.admission import DEFAULT_SLOTS


@click.command("serve", context_settings=CONTEXT)
@click.option(
    "--idle-exit",
    callback=check_seconds,
    metavar="SECONDS",
    help="Exit this long after the last command ended. Default: never.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=DEFAULT_SLOTS,
    show_default=True,
    envvar="KREX_SLOTS",
    show_envvar=True,
    metavar="N",
    help="How many commands may run on a device at once; the others wait for their turn.",
)
@click.option(
    "--system",
    is_flag=True,
    help="Serve all users of the machine and its containers, on /run/krex/control.sock; for root.",
)
@click.option(
    "--group",
    metavar="GROUP",
    help="With --system: serve only members of this group. Default: everybody.",
)
def command(idle_exit: float | None, slots: int, system: bool, group: str | None) -> None:
    """Run the controller in the foreground.

    One serves all commands of a user. It listens on KREX_SOCKET, else on krex/control.sock in
    XDG_RUNTIME_DIR, else on /tmp/krex-UID/control.sock. Where no controller of the user's runs,
    commands use the machine's (--system), if one does.
    """
    from krex.controller import server

    if group is not None and not system:
        raise click.UsageError("--group is for --system")
    access = server.Access(system, None if group is None else _group_id(group))
    socket = paths.own_socket_path(system=system)
    paths.prepare_socket_dir(socket, system=system)
    click.get_current_context().exit(server.main(socket, idle_exit, slots, access) or 0)


def _group_id(name: str) -> int:
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise click.BadParameter(f"there is no group {name!r}", param_hint="--group") from None
