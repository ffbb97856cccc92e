# SPDX-License-Identifier: Apache-2.0
"""Python programs under ctypes, with the library preloaded, beside a driver that counts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.board_host import BoardHost
from support.waiting import DEADLINE_S

# `driver` is the vendor's library; a call needs no arguments for what ignores them.
BEGIN = """
import ctypes, os, sys, threading
def call(name, *args):
    return getattr(driver, name)(*(args or [None] * 12))
def log():
    driver.fake_log.restype = ctypes.c_char_p
    return driver.fake_log().decode().split()
"""


class Client:
    """Starts and runs programs: BEGIN, the vendor's part, and a few lines more."""

    def __init__(self, library: Path, driver: Path, host: BoardHost, begin: str) -> None:
        self.library, self.driver, self.host, self.begin = library, driver, host, BEGIN + begin

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        found = {"LD_PRELOAD": str(self.library), "LD_LIBRARY_PATH": str(self.driver)}
        return os.environ | self.host.environment | found | more

    def run(self, script: str, **more: str) -> str:
        """Its output."""
        words = [sys.executable, "-c", self.begin + script]
        environment = self.environment(more)
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
        return done.stdout.strip()

    @contextmanager
    def start(self, script: str, **more: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", self.begin + script],
            env=self.environment(more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=DEADLINE_S)


def says(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()
