# SPDX-License-Identifier: Apache-2.0
"""Memory that a program did not get while others had some: who is told, and what.

The program is a script that says to the controller what the library does when the driver refuses.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Krex
from support.fake_simulator import simulating

FAILS = """
import os, socket, sys
from krex.native import ffi, lib
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["KREX_SOCKET"])
def say(kind, text, text2):
    values = {"magic": lib.KREX_WIRE_MAGIC, "type": kind, "text": text, "text2": text2}
    s.send(bytes(ffi.buffer(ffi.new("struct krex_wire *", values))))
say(lib.KREX_WIRE_HELLO, b"", os.environ["KREX_COMMAND"].encode())
_, fds, _, _ = socket.recv_fds(s, 4096, 1)
for _ in range(int(sys.argv[1])):
    say(lib.KREX_WIRE_NOTE, b"allocation_refused", b"%d" % (3 << 30))
sys.exit(3)
"""


@pytest.fixture
def sim(place: Path) -> Iterator[Krex]:
    with simulating(place) as runner:
        yield runner


@pytest.fixture
def other(sim: Krex) -> Iterator[str]:
    """The name of another command, which has memory of the same device."""
    words = [*sim.base, "run", "--sim", "--mem", "48GiB", "--"]
    command = sim.popen(*words, "sh", "-c", "echo $KREX_COMMAND; cat")
    assert command.stdout is not None
    yield command.stdout.readline().strip()
    command.communicate(timeout=60)


def fail(sim: Krex, *options: str, times: int = 1) -> subprocess.CompletedProcess[str]:
    words = ["run", "--sim", "--report", str(sim.folder / "r"), *options, "--"]
    whole = sim.env | {"KREX_REGION": "whole"}
    return sim(*words, sim.python_path, "-c", FAILS, str(times), env=whole)


def records(sim: Krex) -> dict[str, dict[str, object]]:
    lines = (sim.folder / "r").read_text().splitlines()
    return {record["schema"]: record for record in map(json.loads, lines)}


def test_what_a_command_did_not_get_beside_others_is_recorded_and_said(
    sim: Krex, other: str
) -> None:
    # WHEN a program gets no memory, twice, while another command has some
    done = fail(sim, times=2)
    # THEN its status is its own, and one line on stderr says who had what
    assert done.returncode == 3
    lines = [line for line in done.stderr.splitlines() if "were refused" in line]
    assert len(lines) == 1
    assert (
        "3GiB of memory on sim:0" in lines[0]
        and f"{other} (has 0 bytes, reserved 48GiB)" in lines[0]
    )
    # AND so do the region's record and the command's
    found = records(sim)
    holder = {"command": other, "processes": 0, "reserved_bytes": 48 << 30, "held_bytes": 0}
    for kind in ("krex.region", "krex.command"):
        refusals = found[kind]["oom_while_shared"]
        assert isinstance(refusals, list) and len(refusals) == 2
        assert refusals[0]["wanted_bytes"] == 3 << 30 and refusals[0]["others"] == [holder]


@pytest.mark.usefixtures("other")
def test_with_require_the_caller_is_told_to_try_again(sim: Krex) -> None:
    done = fail(sim, "--require")
    assert done.returncode == 125
    assert done.stderr.splitlines()[-1].endswith(
        "it may not fail alone, or with --mem; run it again"
    )


def test_what_a_command_did_not_get_alone_is_its_own_affair(sim: Krex) -> None:
    done = fail(sim)
    assert done.returncode == 3 and "refused" not in done.stderr
    assert "krex.command" not in records(sim)
    assert "oom_while_shared" not in records(sim)["krex.region"]
