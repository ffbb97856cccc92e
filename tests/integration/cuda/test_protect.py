# SPDX-License-Identifier: Apache-2.0
"""`--protect` on a device of its own: whatever the siblings do on the host, nobody is beside it."""

from __future__ import annotations

import pytest
from support.command_line import Krex

from krex.protect.freezer import find_base
from krex.sim.check import check, read_records
from krex.sim.log import WORK, read

WORKS = """
import ctypes, os, select, sys
import krex
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(16 << 20)
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), size) == 0
def burst():
    for _ in range(20):
        assert cuda.cuMemsetD8Async(memory, 1, size, None) == 0
    assert cuda.cuCtxSynchronize() == 0
print(os.getpid(), flush=True)
"""
BUSY = WORKS + "while not select.select([sys.stdin], [], [], 0)[0]:\n    burst()\n"
TIMED = WORKS + "for _ in range(5):\n    burst()\n    with krex.region('timed'):\n        burst()\n"


@pytest.mark.parametrize("level", ["gate", "pin", "freeze"])
def test_at_every_level_the_device_says_that_nobody_was_beside_a_region(
    cli: Krex, level: str
) -> None:
    cli.start_controller()
    # GIVEN a sibling that is busy on the device all the time
    report, log = cli.folder / "r.jsonl", cli.folder / "log.tsv"
    options = ("--sim-log", str(log))
    busy = cli.popen(*cli.base, "run", *options, "--", cli.python_path, "-c", BUSY)
    assert busy.stdout is not None
    sibling = int(busy.stdout.readline())
    # WHEN a command at that level times something
    words = ["run", *options, "--protect", level, "--report", str(report)]
    done = cli(*words, "--", cli.python_path, "-c", TIMED)
    assert done.returncode == 0, done.stderr
    busy.communicate(timeout=60)
    cli.stop_controller()
    # THEN its regions are exclusive, and say who ran on meanwhile
    for record in cli.records(report.name):
        assert (record["exclusive"], record["protect"], record["reasons"]) == (True, level, [])
        frozen = level == "freeze" and find_base() is not None
        assert record["siblings"]["commands_frozen"] == frozen
        assert record["siblings"]["commands_left_running"] == (level != "freeze")
    # AND so says the device, on which both were busy
    found = check(read(log), read_records(report))
    assert (found.exclusive, found.violations) == (5, [])
    by = [i.pid for i in read(log).intervals if i.kind in WORK]
    assert by.count(sibling) > 20 and by.count(int(done.stdout)) == 200
