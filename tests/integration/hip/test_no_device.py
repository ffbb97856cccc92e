# SPDX-License-Identifier: Apache-2.0
"""Where there is a HIP runtime and no GPU, `krex run` says so: not every program does."""

from __future__ import annotations

import sys

import pytest
from support.command_line import Krex
from support.sim_device import FOLDER

PROGRAM = """
import ctypes
hip = ctypes.CDLL("libamdhip64.so")
count = ctypes.c_int()
print([hip.hipInit(0), *(hip.hipGetDeviceCount(ctypes.byref(count)) for _ in range(2))])
"""
NO_DEVICE = 100
SAID = "krex: HIP finds no AMD GPU"


@pytest.fixture
def krex(cli: Krex) -> Krex:
    """For commands that find the runtime; a device only if they are given one."""
    cli.env["LD_LIBRARY_PATH"] = str(FOLDER)
    cli.env.pop("KREX_SIM_SOCKET", None)
    return cli


def test_a_command_that_finds_no_gpu_is_told_of_once(krex):
    # GIVEN a runtime, and no device
    # WHEN a command asks for devices again and again
    done = krex("run", "--", sys.executable, "-c", PROGRAM)
    # THEN what it finds is what the runtime said, and krex says it once, and what to do
    assert done.stdout == f"{[NO_DEVICE] * 3}\n"
    assert done.stderr.count(SAID) == 1
    assert "krex run --sim" in done.stderr


def test_nothing_is_said_where_there_is_one(krex):
    # GIVEN a simulated device
    # WHEN a command asks for devices
    done = krex("run", "--sim", "--", sys.executable, "-c", PROGRAM)
    # THEN there is nothing to say
    assert done.stdout == "[0, 0, 0]\n"
    assert SAID not in done.stderr


def test_nothing_is_said_outside_of_a_command(krex):
    # GIVEN a runtime, and no device
    # WHEN a program that only has the library preloaded asks for devices
    preload = {"LD_PRELOAD": str(FOLDER.parent / "libkrex.so")}
    program = krex.popen(sys.executable, "-c", f"import os; os.dup2(1, 2)\n{PROGRAM}", **preload)
    out, _ = program.communicate(timeout=60)
    # THEN krex says nothing
    assert SAID not in out
