# SPDX-License-Identifier: Apache-2.0
"""Which simulated device a program really uses, by the driver's own word."""

from __future__ import annotations

import os
import subprocess
from collections import Counter

import pytest
from support.command_line import Krex
from support.waiting import wait_for

from krex.sim.log import read

# Makes a context, and says on which device; then stays until its stdin ends.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
calls = [
    lambda: cuda.cuInit(0),
    lambda: cuda.cuDeviceGetCount(ctypes.byref(count)),
    lambda: cuda.cuDeviceGet(ctypes.byref(device), 0),
    lambda: cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
]
assert [call() for call in calls] == [0] * len(calls)
print(count.value, cuda.krex_sim_device_number(device), flush=True)
sys.stdin.read()
print(cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 20)), flush=True)
"""
# Contexts are made one at a time on the machine; here they take no time.
MODEL = "[contexts]\ncontext_ns = 0\n"


def start(cli: Krex, *options: str, **env: str) -> subprocess.Popen[str]:
    options = ("--sim-model", str(cli.folder / "model.toml"), *options)
    return cli.popen(*cli.base, "run", *options, "--", cli.python_path, "-c", PROGRAM, **env)


def number(command: subprocess.Popen[str]) -> str:
    """The number of the only device that it sees, once it has a context there."""
    assert command.stdout is not None
    count, found = command.stdout.readline().split()
    assert count == "1"
    return found


def end(*commands: subprocess.Popen[str]) -> None:
    for command in commands:
        out, _ = command.communicate(timeout=60)
        assert (command.returncode, out) == (0, "0\n")


@pytest.fixture
def cli(cli: Krex) -> Krex:
    (cli.folder / "model.toml").write_text(MODEL)
    cli.start_controller()
    return cli


def test_32_programs_on_8_devices_have_their_contexts_four_on_each(cli: Krex) -> None:
    commands = [start(cli, "--sim-gpus", "8") for _ in range(32)]
    assert Counter(map(number, commands)) == {str(n): 4 for n in range(8)}
    end(*commands)


def test_a_program_uses_a_device_that_its_user_lets_it_see(cli: Krex) -> None:
    commands = [start(cli, "--sim-gpus", "4", CUDA_VISIBLE_DEVICES="3,1") for _ in range(4)]
    assert Counter(map(number, commands)) == {"1": 2, "3": 2}
    end(*commands)


def test_a_program_whose_device_is_lost_sees_an_error_and_the_next_runs(cli: Krex) -> None:
    command = start(cli, "--report", str(cli.folder / "r"), KREX_REGION="whole")
    number(command)
    os.kill(cli.status()["simulator"]["pid"], 9)
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 0 and int(out) != 0
    assert [record["reasons"] for record in cli.records("r")] == [["device_lost"]]
    after = start(cli)
    number(after)
    end(after)


def test_the_memory_that_can_be_reserved_is_the_model_s(cli: Krex) -> None:
    (cli.folder / "small.toml").write_text("[device]\nmemory_bytes = 1073741824\n")
    words = ["run", "--sim-model", str(cli.folder / "small.toml"), "--mem"]
    assert cli(*words, "1GiB", "--", "true").returncode == 0
    done = cli(*words, "1025MiB", "--", "true")
    assert done.returncode == 125 and "more than the 1GiB of the device" in done.stderr


# Has a second of work on the device, and dies.
DIES = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
size = ctypes.c_size_t(1 << 20)
calls = [
    lambda: cuda.cuInit(0),
    lambda: cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
    lambda: cuda.cuMemAlloc_v2(ctypes.byref(memory), size),
    lambda: cuda.cuMemsetD8Async(memory, 1, size, None),
]
assert [call() for call in calls] == [0] * len(calls)
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""
SLOW = "[copies]\nmemory_bytes_per_s = 1048576\n[contexts]\nteardown_ns = 700000000\n"


def test_a_region_begins_after_what_a_dead_process_left_on_the_device(cli: Krex) -> None:
    # GIVEN a process that died with work on the device, which takes its time to see to that
    (cli.folder / "slow.toml").write_text(SLOW)
    words = ["run", "--sim-model", str(cli.folder / "slow.toml")]
    other = cli.popen(*cli.base, *words, "--", "cat")  # keeps the devices as they are
    wait_for(lambda: cli.status()["commands"])
    dead = int(cli(*words, "--", cli.python_path, "-c", DIES).stdout)
    # WHEN a region follows
    region = [*words, "--report", str(cli.folder / "r"), "--", "true"]
    assert cli(*region, env=cli.env | {"KREX_REGION": "whole"}).returncode == 0
    other.communicate(timeout=60)
    # THEN by the device's word nothing of it was left when the region had the device
    (record,) = cli.records("r")
    assert record["exclusive"] and record["siblings"]["processes"] == 0
    cli.stop_controller()
    ends = [i.end_ns for i in read(cli.folder / "sim-log.tsv").intervals if i.pid == dead]
    assert len(ends) >= 2 and max(ends) <= record["granted_ns"]
