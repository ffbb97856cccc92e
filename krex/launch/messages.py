# SPDX-License-Identifier: Apache-2.0
"""What `krex run` says: to stderr, one line at a time, prefixed. stdout is the command's alone."""

from __future__ import annotations

import os
import sys


class Messages:
    """A level for each line; `quiet` leaves errors only, `verbose` adds `info`."""

    def __init__(self, *, quiet: bool = False, verbose: int = 0) -> None:
        self._quiet = quiet
        self._verbose = 0 if quiet else verbose
        # With a closed stderr, descriptor 2 may be a file of somebody else's: ask Python, which
        # looked before anything was opened.
        self._open = sys.stderr is not None

    def error(self, text: str) -> None:
        """Say something that also a `--quiet` user must know."""
        self._write(text)

    def warn(self, text: str) -> None:
        """Say something the user may want to change."""
        if not self._quiet:
            self._write(text)

    def info(self, text: str, level: int = 1) -> None:
        """Say what is going on, to those who asked with that many -v."""
        if self._verbose >= level:
            self._write(text)

    def _write(self, text: str) -> None:
        if not self._open:
            return
        line = f"krex: {text}".replace("\n", " ") + "\n"
        try:
            # One write a line, so that lines of several processes do not mix.
            os.write(2, line.encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # a full or closed stderr must not change what the command does
