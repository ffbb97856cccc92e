# SPDX-License-Identifier: Apache-2.0
"""The `krex` command. `main` is the console entry point; errors of ours end up here, once."""

from __future__ import annotations

import sys

from krex.errors import KrexError

# name: (module with a click command called `command`, its line in `krex --help`)
COMMANDS = {
    "run": ("krex.cli.run", "Run a command; its timed regions get the device alone."),
    "serve": ("krex.cli.serve", "Run the controller in the foreground."),
    "status": ("krex.cli.status", "Show devices, regions and commands."),
    "doctor": ("krex.cli.doctor", "Check what this machine offers and how to get the rest."),
    "eval": ("krex.cli.eval", "Measure KREX itself."),
    "lib-path": ("krex.cli.lib_path", "Print the path of the preload library."),
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status (raises SystemExit, always)."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = _run_fast(words)
        if status is None:
            # Only now: click is most of the start-up time of a `krex run`.
            from krex.cli.group import group

            group.main(args=words, prog_name="krex")
            status = 0
    except KrexError as error:
        _print_error(error)
        status = error.exit_code
    sys.exit(status)


def _run_fast(words: list[str]) -> int | None:
    """The exit status of a well-formed `krex run`; None for everything that click must see."""
    if not words or words[0] != "run":
        return None
    from krex.launch.options import parse_fast

    options = parse_fast(words[1:])
    if options is None:
        return None
    from krex.launch.session import run

    return run(options)


def _print_error(error: KrexError) -> None:
    if sys.stderr is None:  # started with a closed stderr
        return
    try:
        print(f"krex: {error}", file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody reads our stderr; the exit status still tells
