# SPDX-License-Identifier: Apache-2.0
"""Programs that make one call by a road that they are told, with the library preloaded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.board_host import BoardHost


class Runner:
    """Runs a program beside one of several drivers, and on the host's board."""

    def __init__(self, library: Path, drivers: Path, pattern: str, host: BoardHost) -> None:
        self.library, self.drivers, self.pattern, self.host = library, drivers, pattern, host

    def environment(self, driver: str, **more: str) -> dict[str, str]:
        folder = self.drivers / driver
        (path,) = folder.glob(self.pattern)
        found = {"LD_PRELOAD": str(self.library), "LD_LIBRARY_PATH": str(folder)}
        return os.environ | self.host.environment | found | {"DRIVER": str(path)} | more

    def __call__(self, words: list, driver: str = "usual", **more: str) -> dict[str, str]:
        done = subprocess.run(
            words,
            env=self.environment(driver, **more),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
        return dict(line.split("=", 1) for line in done.stdout.splitlines())


def gated(found: dict[str, str], host: BoardHost) -> bool:
    """The driver got one call, our hook was what the program had, and the board counted it."""
    called = (found["from"], found["calls"], found["returned"]) == ("libkrex.so", "1", "0")
    return called and host.submissions() == 1
