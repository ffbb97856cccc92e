# SPDX-License-Identifier: Apache-2.0
"""A `krex run` that stands still, or is killed: the command's records are written all the same."""

from __future__ import annotations

import signal
import subprocess

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

REGIONS = 1000  # more records than a socket's buffer has room for
PROGRAM = f"""
import sys, krex
print("ready", flush=True)
sys.stdin.readline()
for number in range({REGIONS}):
    with krex.region(str(number)):
        pass
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def child(krex: Krex) -> subprocess.Popen[str]:
    run = ("run", "--report", str(krex.folder / "r.jsonl"), "-q", "--", krex.python_path)
    child = krex.popen(*krex.base, *run, "-c", PROGRAM)
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: subprocess.Popen[str]) -> None:
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"


def names(krex: Krex) -> list[str]:
    return [r["name"] for r in krex.records("r.jsonl")]


def test_no_record_is_lost_on_a_krex_run_that_stands_still(
    krex: Krex, child: subprocess.Popen[str]
) -> None:
    child.send_signal(signal.SIGSTOP)
    go(child)
    # GIVEN more records than the connection takes WHEN it goes on THEN it gets them all, in order.
    child.send_signal(signal.SIGCONT)
    child.communicate("end\n", timeout=DEADLINE_S)
    assert child.returncode == 0
    assert names(krex) == list(map(str, range(REGIONS)))


def test_the_controller_writes_on_for_one_that_was_killed(
    krex: Krex, child: subprocess.Popen[str]
) -> None:
    child.kill()
    child.wait()
    go(child)
    wait_for(lambda: len(names(krex)) == REGIONS)
    assert all(r["exclusive"] for r in krex.records("r.jsonl"))
    # And it lets go of the file with the command.
    child.stdin.close()
    report = str(krex.folder / "r.jsonl")
    held = ["ls", "-l", f"/proc/{krex.controller_pid()}/fd"]
    wait_for(lambda: report not in subprocess.run(held, capture_output=True, text=True).stdout)
