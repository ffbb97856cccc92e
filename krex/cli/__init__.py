# SPDX-License-Identifier: Apache-2.0
"""The `krex` command. `main` is the console entry point; errors of ours end up here, once."""

from __future__ import annotations

import os
import sys

from krex.errors import KrexError

# name: (module with a click command called `command`, its line in `krex --help`)
COMMANDS = {
    "run": ("krex.cli.run", "Run a command; its timed regions get the device alone."),
    "explain": ("krex.cli.explain", "Say what would be marked in a command, and why."),
    "serve": ("krex.cli.serve", "Run the controller in the foreground."),
    "status": ("krex.cli.status", "Show devices, regions and commands."),
    "audit": ("krex.cli.audit", "Look for what speaks against the numbers of a report."),
    "thaw": ("krex.cli.thaw", "Let commands run on that were left frozen."),
    "doctor": ("krex.cli.doctor", "Try out everything that KREX needs on this machine."),
    "eval": ("krex.cli.eval", "Measure what KREX costs, on this machine."),
    "sim": ("krex.cli.sim", "Look at simulated devices: their model, what was on them."),
    "lib-path": ("krex.cli.lib_path", "Print the path of the preload library."),
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status; does not return."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["run"]:
            _run_if_well_formed(words[1:])
        # Only now: click is most of the start-up time of a `krex run`.
        from krex.cli.group import group

        group.main(args=words, prog_name="krex")
    except KrexError as error:
        _print_error(error)
        sys.exit(error.exit_code)


def _run_if_well_formed(words: list[str]) -> None:
    """`krex run` without click; returns only if the command line is one that click must see."""
    from krex.launch.options import parse_fast

    options = parse_fast(words)
    if options is None:
        return
    from krex.launch.session import run

    # All is written by then, and the kernel closes the rest: tearing down the interpreter would
    # only take another 4 ms.
    os._exit(run(options))


def _print_error(error: KrexError) -> None:
    if sys.stderr is None:  # started with a closed stderr
        return
    try:
        print(f"krex: {error}", file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody reads our stderr; the exit status still tells
