# SPDX-License-Identifier: Apache-2.0
"""A controller that is a script in a test, and `krex` as a process against it.

So each thing a controller may do, dying and stalling included, happens exactly when the test says.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.waiting import DEADLINE_S

from krex.launch.channel import PROTOCOL

ROOT = Path(__file__).parents[2]

# The library is a stand-in, so that these tests need no build.
DRIVER = """
import sys
import krex.paths
library = sys.argv.pop(1)
krex.paths.library_path = lambda: library
from krex.cli import main
main()
"""


class Connection:
    """The controller's end of one `krex run`."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        sock.settimeout(DEADLINE_S)

    def receive(self) -> dict[str, Any] | None:
        """The next message but for those that ask for nothing here.

        `told` says that one of ours was read, `signalled` that the command should be thawed.
        """
        while (message := self.receive_any()) and message["op"] in ("told", "signalled"):
            pass
        return message

    def receive_any(self) -> dict[str, Any] | None:
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:  # gone, with something of ours unread
            return None
        return json.loads(data) if data else None

    def expect(self, operation: str) -> dict[str, Any]:
        message = self.receive()
        assert message is not None and message["op"] == operation, message
        return message

    def send(self, operation: str, *, fds: list[int] | None = None, **rest: Any) -> None:
        data = json.dumps({"op": operation, **rest}).encode()
        socket.send_fds(self.socket, [data], fds or [])

    def admit(self, **rest: Any) -> dict[str, Any]:
        """Admit the command; its `started` message."""
        answer: dict[str, Any] = {"command": "c7", "device": "cpu:0", "cgroup": None, "lacking": []}
        failure = rest.pop("failure", None)
        self.send("admitted", **{"protocol": PROTOCOL, **answer, **rest})
        started = self.expect("started")
        self.send("placed", failure=failure)
        return started

    def finish(self) -> dict[str, Any]:
        ended = self.expect("ended")
        self.send("bye")
        return ended


Script = Callable[[Connection], None]


class Controller:
    """Listens, and plays one script a connection; `check` raises what went wrong in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self._failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen(8)
        self._socket.settimeout(DEADLINE_S)

    def play(self, *scripts: Script) -> None:
        thread = threading.Thread(target=self._serve, args=(scripts,), daemon=True)
        thread.start()
        self._threads.append(thread)

    def check(self) -> None:
        for thread in self._threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        self._socket.close()

    def _serve(self, scripts: tuple[Script, ...]) -> None:
        try:
            for script in scripts:
                accepted, _ = self._socket.accept()
                with accepted:
                    connection = Connection(accepted)
                    request = connection.receive()
                    assert request is not None
                    self.requests.append(request)
                    script(connection)
        except BaseException as failure:  # noqa: BLE001 - raised again by check()
            self._failures.append(failure)


def plain(connection: Connection) -> None:
    connection.admit()
    connection.finish()


class Runner:
    """Starts `krex` with the socket of the fake controller."""

    def __init__(self, place: Path, library: Path) -> None:
        self.base = [sys.executable, "-c", DRIVER, str(library)]
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KREX_")}
        self.environment = {**kept, "KREX_SOCKET": str(place / "s"), "PYTHONPATH": str(ROOT)}

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        settings: dict[str, Any] = {"stdout": pipe, "stderr": pipe, "text": True}
        settings |= {"env": self.environment} | options
        return subprocess.Popen([*self.base, *words], **settings)

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        process = self.start("run", *words, **options)
        out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)
