# SPDX-License-Identifier: Apache-2.0
"""A program that forks in a signal handler while it waits for its region."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

SOURCE = Path(__file__).with_name("fork_program.c")
HOLDER = (
    "import sys, krex\nwith krex.region():\n    print('inside', flush=True); sys.stdin.readline()"
)
# Its siblings run on, and so do their handlers.
RUN = ("run", "-q", "--sim", "--protect", "gate", "--")


def has_ended_child(pid: int) -> bool:
    """Whether it has a child that is over, and not waited for yet."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    states = [Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] for c in children]
    return states == ["Z"]


def test_the_child_goes_on_and_the_parent_has_its_region(cli: Krex) -> None:
    program = cli.folder / "program"
    include = cli("lib-path", "--include").stdout.strip()
    subprocess.run(["cc", "-D_GNU_SOURCE", f"-I{include}", "-o", program, SOURCE], check=True)
    # GIVEN a program that waits for its region
    holder = cli.start(*RUN, sys.executable, "-c", HOLDER, stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "inside\n"
    waiter = cli.start(*RUN, str(program))
    pid = int(waiter.stdout.readline())
    wait_for(lambda: cli.status()["devices"][0]["queue"])
    # WHEN it forks in a signal handler THEN the child, which asked for nothing, comes to its end
    os.kill(pid, signal.SIGUSR1)
    wait_for(lambda: has_ended_child(pid))
    # AND the parent has its turn
    holder.communicate("\n", timeout=DEADLINE_S)
    out, err = waiter.communicate(timeout=DEADLINE_S)
    assert (waiter.returncode, out, err) == (0, "0 7\n", "")
