# SPDX-License-Identifier: Apache-2.0
"""The `krex` command as a user has it, with a controller of one test's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.waiting import DEADLINE_S, ended, wait_for

PROGRAM = Path(__file__).parents[1] / "integration" / "region_program.py"


class Krex:
    """Starts `krex` and commands against one socket; `close` ends all of it."""

    def __init__(self, folder: Path, package_parent: Path | None = None) -> None:
        self.folder = folder
        self.python_path = sys.executable
        self.base = [self.python_path, "-m", "krex.cli"]
        self.env = os.environ | {"KREX_SOCKET": str(folder / "control.sock")}
        if package_parent is not None:
            self.env["PYTHONPATH"] = str(package_parent)
        self.started: list[subprocess.Popen[str]] = []
        self.serve: subprocess.Popen[bytes] | None = None

    def start_controller(self, *options: str) -> None:
        """Start a controller in the foreground, and wait until it serves."""
        path = Path(self.env["KREX_SOCKET"])
        path.unlink(missing_ok=True)
        self.serve = subprocess.Popen(
            [*self.base, "serve", *options], env=self.env, stdin=subprocess.DEVNULL, cwd=self.folder
        )
        wait_for(lambda: path.exists() or self.serve.poll() is not None)
        assert self.serve.poll() is None, "the controller does not come up"

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start `krex WORDS`, with its output captured."""
        pipe = subprocess.PIPE
        settings: dict[str, Any] = {"stdout": pipe, "stderr": pipe, "text": True}
        settings |= {"env": self.env, "cwd": self.folder} | options
        child = subprocess.Popen([*self.base, *words], **settings)
        self.started.append(child)
        return child

    def __call__(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `krex WORDS` to its end."""
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def popen(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start any command, with its stdin and stdout ours; `env` adds to its environment."""
        pipe = subprocess.PIPE
        child = subprocess.Popen(words, env=self.env | env, stdin=pipe, stdout=pipe, text=True)
        self.started.append(child)
        return child

    def python(
        self, script: Path, *words: str, options: tuple[str, ...] = (), **env: str
    ) -> subprocess.Popen[str]:
        """Start a Python program under `krex run`."""
        run = [*self.base, "run", *options, "--", self.python_path]
        return self.popen(*run, str(script), *words, **env)

    def program(self, *options: str, regions: int = 3, how: str = "") -> subprocess.Popen[str]:
        """Start the region program under `krex run`."""
        return self.python(PROGRAM, str(regions), how, options=options)

    def records(self, name: str) -> list[dict[str, Any]]:
        """Read a report."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def status(self) -> dict[str, Any]:
        """What `krex status --json` prints."""
        return json.loads(self("status", "--json").stdout)

    def controller_pid(self) -> int:
        """The pid of the controller that runs, whoever started it."""
        return int(self.status()["controller"]["pid"])

    def close(self) -> None:
        """End what this test started, and the controller that `krex run` started."""
        for child in self.started:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:  # unshare passes no signal on, and kills its child
                child.kill()
                child.wait(10)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        self.stop_controller()

    def stop_controller(self) -> None:
        """End the controller, if one runs."""
        if self.serve:
            self.serve.terminate()
            self.serve.wait(10)
        elif controller := self.status()["controller"]:
            os.kill(controller["pid"], signal.SIGTERM)
            wait_for(lambda: ended(controller["pid"]))
