# SPDX-License-Identifier: Apache-2.0
"""A private controller for each test, and commands beside each other."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("region_program.py")


class Krex:
    """Starts `krex run` commands against this test's own controller."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {"KREX_SOCKET": str(folder / "control.sock")}
        self.started: list[subprocess.Popen[str]] = []
        self.start_controller()

    def start_controller(self) -> None:
        """Start it, and wait until it serves."""
        path = self.folder / "control.sock"
        path.unlink(missing_ok=True)
        self.serve = subprocess.Popen(
            [sys.executable, "-m", "krex.cli", "serve"], env=self.env, stdin=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while not path.exists():
            assert self.serve.poll() is None
            assert time.monotonic() < deadline, "the controller does not come up"
            time.sleep(0.01)

    def popen(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start a command with its stdout captured."""
        child = subprocess.Popen(list(words), env=self.env | env, stdout=subprocess.PIPE, text=True)
        self.started.append(child)
        return child

    def program(self, *options: str, regions: int = 3, how: str = "") -> subprocess.Popen[str]:
        """Start the region program under krex run."""
        run = [sys.executable, "-m", "krex.cli", "run", *options, "--"]
        return self.popen(*run, sys.executable, str(PROGRAM), str(regions), how)

    def records(self, name: str) -> list[dict]:
        """Read a report."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def status(self) -> dict:
        """What `krex status --json` prints."""
        words = [sys.executable, "-m", "krex.cli", "status", "--json"]
        return json.loads(subprocess.run(words, env=self.env, stdout=-1, check=True).stdout)

    def close(self) -> None:
        """End what this test started."""
        for child in [*self.started, self.serve]:
            child.terminate()
            child.wait(10)
            if child.stdout:
                child.stdout.close()


@pytest.fixture
def krex(tmp_path: Path) -> Iterator[Krex]:
    pytest.importorskip("pyopencl")
    tmp_path.chmod(0o700)
    runner = Krex(tmp_path)
    try:
        yield runner
    finally:
        runner.close()
