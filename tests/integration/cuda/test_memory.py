# SPDX-License-Identifier: Apache-2.0
"""A device whose memory ran out for one program while others have some: who held how much."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from support.command_line import Krex
from support.sim_device import FOLDER

# Allocates so many bytes, and keeps them until its stdin ends.
PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
result = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(int(sys.argv[1])))
print(result, os.getpid(), flush=True)
sys.stdin.read()
sys.exit(result)
"""
MIB = 1 << 20
CONTEXT = 4 * MIB
MODEL = f"[device]\nmemory_bytes = {256 * MIB}\ncontext_bytes = {CONTEXT}\n"
OUT_OF_MEMORY = 2


class Small:
    """A device with little memory."""

    def __init__(self, krex: Krex) -> None:
        self.krex, self.report = krex, krex.folder / "report.jsonl"
        model = krex.folder / "small.toml"
        model.write_text(MODEL)
        self._run = [*krex.base, "run", "--sim", "--sim-model", str(model)]
        self._program = [krex.python_path, "-c", PROGRAM]

    def hold(self, amount: int) -> int:
        """A command takes so much; its process."""
        return self._holds(self.krex.popen(*self._run, "--", *self._program, str(amount)))

    def hold_without_krex(self, amount: int) -> int:
        values = {"KREX_SIM_SOCKET": str(self.krex.folder / "sim.sock")}
        values |= {"LD_LIBRARY_PATH": str(FOLDER)}
        return self._holds(self.krex.popen(*self._program, str(amount), **values))

    def _holds(self, process: subprocess.Popen[str]) -> int:
        assert process.stdout
        result, pid = map(int, process.stdout.readline().split())
        assert result == 0
        return pid

    def try_for(self, amount: int, *options: str) -> subprocess.CompletedProcess[str]:
        """A command that is one region asks for so much."""
        words = [*self._run, *options, "--report", str(self.report), "--", *self._program]
        return subprocess.run(
            [*words, str(amount)],
            env=self.krex.env | {"KREX_REGION": "whole"},
            input="",
            capture_output=True,
            text=True,
            timeout=60,
        )

    def refusals(self, kind: str) -> list[dict[str, Any]]:
        records = map(json.loads, self.report.read_text().splitlines())
        return [r for record in records if record["schema"] == kind for r in record.get(OOM, ())]


OOM = "oom_while_shared"


@pytest.fixture
def small(cli: Krex) -> Small:
    cli.start_controller()
    return Small(cli)


def test_who_had_the_memory_is_recorded_and_said(small: Small) -> None:
    # GIVEN a command that has most of the memory
    small.hold(192 * MIB)
    (other,) = (c["command"] for c in small.krex.status()["commands"])
    # WHEN another one does not get what it asks for
    done = small.try_for(128 * MIB)
    # THEN its status is its own, and one line says who has how much
    assert done.returncode == OUT_OF_MEMORY
    (line,) = (line for line in done.stderr.splitlines() if "were refused" in line)
    process = int(done.stdout.split()[1])
    assert f"128MiB of memory on sim:0 were refused to process {process} " in line
    assert f"{other} (has 196MiB)" in line
    # AND so do the records of its region and of the command
    holder = {"command": other, "processes": 1, "reserved_bytes": 0}
    holder["held_bytes"] = 192 * MIB + CONTEXT
    for kind in ("krex.region", "krex.command"):
        (refusal,) = small.refusals(kind)
        assert refusal["wanted_bytes"] == 128 * MIB and refusal["others"] == [holder]


def test_with_require_the_caller_is_told_to_try_again(small: Small) -> None:
    small.hold(192 * MIB)
    done = small.try_for(128 * MIB, "--require")
    assert done.returncode == 125 and "run it again" in done.stderr.splitlines()[-1]


def test_what_is_more_than_the_device_has_is_the_program_s_affair(small: Small) -> None:
    done = small.try_for(512 * MIB, "--require")
    assert done.returncode == OUT_OF_MEMORY and "refused" not in done.stderr
    assert small.refusals("krex.region") == small.refusals("krex.command") == []


def test_a_program_without_krex_that_has_the_memory_is_named_too(small: Small) -> None:
    # GIVEN a small command, and a program without KREX that has the rest
    small.hold(1 * MIB)
    small.hold_without_krex(192 * MIB)
    # WHEN a command does not get what it asks for
    done = small.try_for(128 * MIB)
    # THEN what that one has stands beside what the commands have
    assert "1 processes without KREX (has 196MiB)" in done.stderr
    (refusal,) = small.refusals("krex.command")
    held = [(bool(other["command"]), other["held_bytes"]) for other in refusal["others"]]
    assert held == [(True, 1 * MIB + CONTEXT), (False, 192 * MIB + CONTEXT)]
