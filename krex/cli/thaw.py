# SPDX-License-Identifier: Apache-2.0
"""`krex thaw`: let commands run on that a dead controller left frozen; or one, whoever froze it."""

from __future__ import annotations

from pathlib import Path

import click

from krex import paths
from krex.cli.group import CONTEXT
from krex.errors import ControllerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from krex.protect.journal import Left

NOTHING = "nothing was left behind"


@click.command("thaw", context_settings=CONTEXT)
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
@click.option("--all", "everything", is_flag=True, help="All that dead controllers left.")
@click.option(
    "--force", is_flag=True, help="With --all: also what a living controller holds frozen."
)
def command(commands: tuple[str, ...], everything: bool, force: bool) -> None:
    """Let commands run on that stand still although nobody measures.

    COMMAND is a name that `krex status` shows. A region that its freeze served is then recorded as
    not exclusive. A controller, and so the next `krex run`, does the same as --all when it starts.

    The exit status is 1 if a COMMAND is not there, or a living controller holds something frozen.
    """
    if bool(commands) == everything or (force and not everything):
        raise click.UsageError("say --all, or which commands")
    socket = Path(paths.socket_path())
    if not socket.parent.is_dir():
        click.echo(NOTHING)
    elif everything:
        _thaw_all(socket, force=force)
    else:
        _thaw_some(socket, commands)


def _thaw_all(socket: Path, *, force: bool) -> None:
    from krex.protect.journal import Journal, is_asked_to_freeze, lock, thaw

    journal = Journal(socket)
    with lock(socket) as alone:
        if alone:
            left = journal.recover()
            socket.unlink(missing_ok=True)  # nobody listens: who does has the lock
            _tell(left)
            return
    # It did the same when it started: what stands still now, it holds.
    held = [entry.path for entry in journal.groups().values() if is_asked_to_freeze(entry.path)]
    if held and not force:
        raise ControllerError(
            f"a controller runs at {socket}, and thaws by itself when a region ends",
            "`krex status` shows it; --all --force thaws what it holds frozen",
        )
    for path in filter(thaw, held):
        click.echo(f"thawed {path}")
    if not held:
        click.echo(NOTHING)


def _tell(left: Left) -> None:
    for path in left.thawed:
        click.echo(f"thawed {path}")
    for path in left.removed:
        click.echo(f"removed {path}")
    for path in left.populated:
        click.echo(f"still running, without protection: {path}")
    if not (left.thawed or left.removed or left.populated):
        click.echo(NOTHING)


def _thaw_some(socket: Path, commands: tuple[str, ...]) -> None:
    from krex.protect.journal import Journal, thaw

    groups = Journal(socket).groups()
    if unknown := [name for name in commands if name not in groups]:
        raise ControllerError(
            f"no cgroup is on record for {', '.join(unknown)}",
            "`krex status` shows the commands, and which of them are frozen",
        )
    for name in commands:
        path = groups[name].path
        click.echo(f"thawed {path}" if thaw(path) else f"{path} does not stand still")
