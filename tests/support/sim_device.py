# SPDX-License-Identifier: Apache-2.0
"""The process of the simulated devices by itself, and clients that a test drives line by line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import NamedTuple

from support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
# `make check` runs the same tests against a build with sanitizers.
FOLDER = Path(os.environ.get("KREX_TEST_SIM", ROOT / "krex" / "lib" / "sim"))
DEVICE = FOLDER / "krex-sim-device"
CLIENT_SOURCE = ROOT / "tests" / "integration" / "sim_client.c"


# As in shim/sim/wire.h.
class Op(IntEnum):
    HELLO = 1
    GONE = 2
    CONTEXT = 3
    CONTEXT_END = 4
    ALLOCATE = 5
    FREE = 6
    MEMORY = 7
    KERNEL = 8
    LOAD = 9


class Kind(IntEnum):
    RUN = 1
    COPY_TO = 2
    EVENT = 6
    HOST = 7
    HOST_DONE = 8


class Flag(IntFlag):
    EXPLICIT = 1
    HELD = 2


class Answer(NamedTuple):
    status: int
    context: int
    value: int
    value2: int


class Result(NamedTuple):
    status: int
    start: int
    end: int


def build_client(folder: Path) -> Path:
    """Compile the client."""
    path = folder / "sim_client"
    words = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"]
    words += [f"-I{ROOT / 'shim'}", "-o", str(path), str(CLIENT_SOURCE)]
    subprocess.run(words, check=True, timeout=60)
    return path


class Client:
    """One process; its death is the test's to choose."""

    def __init__(self, program: Path, socket: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program, socket], stdin=pipe, stdout=pipe, text=True)
        self.pid = self.process.pid

    def tell(self, line: str) -> str:
        """Send a line; the answer."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def ask(
        self, op: Op, device: int = 0, context: int = 0, value: int = 0, text: str = ""
    ) -> Answer:
        answer = self.tell(f"ask {op} {device} {context} {value} {text}")
        return Answer(*map(int, answer.split()))

    def begin(self, op: Op, device: int = 0, context: int = 0, value: int = 0) -> None:
        assert self.tell(f"begin {op} {device} {context} {value}") == "begun"

    def answer(self) -> Answer:
        return Answer(*map(int, self.tell("answer").split()))

    def hello(self) -> Client:
        assert self.ask(Op.HELLO).status == 0
        return self

    def context(self, device: int = 0) -> int:
        answer = self.ask(Op.CONTEXT, device)
        assert answer.status == 0
        return answer.context

    def send(
        self,
        kind: Kind,
        context: int = 0,
        stream: int = 0,
        amount: int = 0,
        flags: int = 0,
        kernel: int = 0,
    ) -> int:
        return int(self.tell(f"send {kind} {context} {stream} {amount} {flags} {kernel}"))

    def run(self, context: int, ns: int, stream: int = 1, flags: int = 0) -> int:
        kernel = self.ask(Op.KERNEL, text="spin").value
        return self.send(Kind.RUN, context, stream, ns, Flag.EXPLICIT | flags, kernel)

    def wait(self, seq: int, what: int = 1) -> Result:
        return Result(*map(int, self.tell(f"wait {seq} {what}").split()))

    def wait_turn(self, seq: int) -> Result:
        return self.wait(seq, 2)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


class Device:
    """A running process of devices."""

    def __init__(self, folder: Path, client: Path, *arguments: str, **options) -> None:
        self.socket = folder / "sim.sock"
        self.log = folder / "log.tsv"
        self._client = client
        self._clients: list[Client] = []
        before = self._inode()
        words = [DEVICE, "--socket", self.socket, "--log", self.log, *arguments]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **options)
        # The name appears, or changes its meaning, when somebody listens.
        wait_for(lambda: self._inode() != before or self.process.poll() is not None)

    def _inode(self) -> int:
        return self.socket.stat().st_ino if self.socket.exists() else 0

    def client(self) -> Client:
        client = Client(self._client, self.socket)
        self._clients.append(client)
        return client

    def stop(self, signal_number: int = signal.SIGTERM) -> str:
        """End it by a signal; what it wrote to stderr."""
        self.process.send_signal(signal_number)
        return self.ended()

    def ended(self) -> str:
        """What it wrote to stderr, once it has ended."""
        return self.process.communicate(timeout=30)[1]

    def cpu_ticks(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def wake_ups(self) -> int:
        """How often it has gone to sleep."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.process.kill()
        with contextlib.suppress(ValueError):
            self.process.communicate(timeout=30)


@contextlib.contextmanager
def running_device(folder: Path, client: Path, *arguments: str, **options) -> Iterator[Device]:
    """A device process, gone in the end."""
    device = Device(folder, client, *arguments, **options)
    try:
        yield device
    finally:
        device.close()


def write_model(path: Path, **keys: object) -> str:
    """A flat model that differs from the default in these keys (section__key)."""
    lines = [f"{name.replace('__', '.')} {value}\n" for name, value in keys.items()]
    path.write_text("".join(lines))
    return os.fspath(path)


def krex_command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `krex WORDS` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "krex.cli", *words], capture_output=True, text=True, timeout=60
    )
