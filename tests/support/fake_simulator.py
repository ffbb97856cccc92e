# SPDX-License-Identifier: Apache-2.0
"""A process of simulated devices that simulates nothing: it says what a test has it say.

Beside its socket: `started.jsonl` has the arguments of each start; while there is a file `working`,
something of every process is left on the devices; one that finds a file `broken` does not start.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.command_line import Krex

from krex.native import ffi, lib

TESTS = Path(__file__).parents[1]
MEMORY = 64 << 30

LAUNCHER = """#!{python}
import sys
sys.path[:0] = {path}
from support.fake_simulator import main
main()
"""

# `krex` with the folder of the simulated devices elsewhere.
DRIVER = """
import sys
import krex.paths
folder = sys.argv.pop(1)
krex.paths.simulator_dir = lambda: folder
from krex.cli import main
main()
"""


def install(folder: Path) -> Path:
    """A folder as krex/lib/sim is; what is in it needs no build."""
    folder.mkdir()
    path = [str(TESTS), str(TESTS.parent)]
    program = folder / "krex-sim-device"
    program.write_text(LAUNCHER.format(python=sys.executable, path=path))
    program.chmod(0o755)
    return folder


@contextmanager
def simulating(place: Path) -> Iterator[Krex]:
    """`krex` with such devices, and a controller."""
    runner = Krex(place)
    runner.base = [sys.executable, "-c", DRIVER, str(install(place / "lib"))]
    try:
        runner.start_controller()
        yield runner
    finally:
        runner.close()


def starts(place: Path) -> list[dict[str, object]]:
    """The arguments of each start so far."""
    path = place / "started.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _answer(packet: bytes, folder: Path) -> bytes:
    question = ffi.from_buffer("struct krex_sim_packet *", packet)
    assert question.magic == lib.KREX_SIM_MAGIC
    values = {"magic": lib.KREX_SIM_MAGIC, "op": question.op, "status": lib.KREX_SIM_OK}
    if question.op == lib.KREX_SIM_MEMORY:
        values |= {"value": MEMORY, "value2": MEMORY}
    while question.op == lib.KREX_SIM_GONE and (folder / "working").exists():
        time.sleep(0.01)
    return bytes(ffi.buffer(ffi.new("struct krex_sim_packet *", values)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--devices", type=int)
    parser.add_argument("--parent-fd", type=int)
    for name in ("--log", "--model", "--linger"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    folder = arguments.socket.parent
    if (folder / "broken").exists():
        sys.exit("krex-sim-device: no such luck")
    told = {"pid": os.getpid(), "devices": arguments.devices, "log": arguments.log}
    told["model"] = Path(arguments.model).read_text() if arguments.model else None
    with (folder / "started.jsonl").open("a") as file:
        file.write(json.dumps(told) + "\n")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(arguments.socket))
    listener.listen(8)
    clients = {arguments.parent_fd: None, listener.fileno(): None}
    while True:
        for fd in select.select(list(clients), [], [])[0]:
            client = clients[fd]
            if fd == arguments.parent_fd:
                return  # the controller is gone
            if client is None:
                accepted, _ = listener.accept()
                clients[accepted.fileno()] = accepted
            elif packet := client.recv(1 << 16):
                client.send(_answer(packet, folder))
            else:
                del clients[fd]
