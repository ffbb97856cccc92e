# SPDX-License-Identifier: Apache-2.0
"""A program that forks in a signal handler while it waits for its region."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import Krex
from support.sim_device import FOLDER
from support.waiting import DEADLINE_S, wait_for

SOURCE = Path(__file__).with_name("fork_program.c")
HOLDER = (
    "import sys, krex\nwith krex.region():\n    print('inside', flush=True); sys.stdin.readline()"
)
# Its siblings run on, and so do their handlers.
RUN = ("run", "-q", "--sim", "--protect", "gate", "--")


WAYS = {"its-own": [], "timed-event": ["-DEVENTS", f"-L{FOLDER}", "-l:libcuda.so.1"]}


def has_child(pid: int) -> bool:
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())


@pytest.mark.parametrize("way", WAYS)
def test_the_child_goes_on_and_the_parent_has_its_region(cli: Krex, way: str) -> None:
    program = cli.folder / "program"
    include = cli("lib-path", "--include").stdout.strip()
    compiler = ["cc", "-D_GNU_SOURCE", f"-I{include}", "-o", str(program), str(SOURCE)]
    subprocess.run([*compiler, *WAYS[way]], check=True)
    waiter = cli.start(*RUN, str(program), stdin=subprocess.PIPE)
    pid = int(waiter.stdout.readline())
    # GIVEN a program that waits for its region
    holder = cli.start(*RUN, sys.executable, "-c", HOLDER, stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "inside\n"
    waiter.stdin.write("\n")
    waiter.stdin.flush()
    wait_for(lambda: cli.status()["devices"][0]["queue"])
    # WHEN it forks in a signal handler, and the device is free
    os.kill(pid, signal.SIGUSR1)
    wait_for(lambda: has_child(pid))
    holder.communicate("\n", timeout=DEADLINE_S)
    # THEN the child, which asked for nothing, came to its end, and the parent had its turn
    out, err = waiter.communicate(timeout=DEADLINE_S)
    assert (waiter.returncode, out, err) == (0, "0 7\n", "")
