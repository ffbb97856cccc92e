# SPDX-License-Identifier: Apache-2.0
"""Which simulated device a command finds, and which gate it meets, however it names the device."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.command_line import Krex

from krex.sim.visible import names

HERE = Path(__file__).parent
FOLDERS = {vendor: str(HERE / vendor) for vendor in ("cuda", "hip")}
ONE, TWO = (names(number)[1] for number in (1, 2))

# Is a process on its device until its stdin ends.
THERE = """
import sys
from hiprt import get
from ctypes import c_size_t
get("hipMalloc", c_size_t(4))
print("there", flush=True)
sys.stdin.read()
"""
BY_NUMBER = {"HIP_VISIBLE_DEVICES": "1"}
BY_NAME = {"HIP_VISIBLE_DEVICES": ONE}
BY_PLACE = {"ROCR_VISIBLE_DEVICES": f"{ONE},0", "HIP_VISIBLE_DEVICES": "0"}


@pytest.fixture
def cli(cli: Krex) -> Krex:
    given = filter(None, [os.environ.get("PYTHONPATH")])
    cli.env["PYTHONPATH"] = os.pathsep.join([*FOLDERS.values(), *given])
    cli.start_controller()
    return cli


@pytest.mark.parametrize(
    ("vendor", "variables", "number"),
    [
        ("cuda", {"CUDA_VISIBLE_DEVICES": "2"}, 2),
        ("cuda", {"CUDA_VISIBLE_DEVICES": names(3)[0]}, 3),
        ("hip", {"CUDA_VISIBLE_DEVICES": "2"}, 2),
        ("hip", {"HIP_VISIBLE_DEVICES": "3"}, 3),
        ("hip", {"HIP_VISIBLE_DEVICES": TWO}, 2),
        ("hip", {"ROCR_VISIBLE_DEVICES": "3,1"}, 1),
        ("hip", {"ROCR_VISIBLE_DEVICES": TWO}, 2),
        ("hip", {"ROCR_VISIBLE_DEVICES": f"0,{TWO}", "HIP_VISIBLE_DEVICES": "1"}, 2),
        ("hip", {"ROCR_VISIBLE_DEVICES": "0,3", "HIP_VISIBLE_DEVICES": names(3)[1]}, 3),
    ],
)
def test_a_command_gets_a_device_that_its_user_lets_it_see(cli, vendor, variables, number):
    # GIVEN four devices, of which the user lets some be seen
    # WHEN a command runs on one of them
    client = f"{FOLDERS[vendor]}/clients/visible_client.py"
    words = [*cli.base, "run", "--sim-gpus", "4", "--", cli.python_path, client]
    env = cli.env | variables
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60)
    # THEN it sees that one, by the driver's own word, and no other
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["numbers"] == [number]


def on_device(
    cli: Krex, variables: dict[str, str], *options: str, **env: str
) -> subprocess.Popen[str]:
    """A process that names its device itself, in a command on sim:1."""
    pairs = [f"{name}={value}" for name, value in variables.items()]
    words = ["run", "--sim-gpus", "2", "--device", "sim:1", *options, "--", "env", *pairs]
    process = cli.popen(*cli.base, *words, cli.python_path, "-c", THERE, **env)
    assert process.stdout.readline() == "there\n"
    return process


@pytest.mark.parametrize("variables", [BY_NUMBER, BY_NAME, BY_PLACE])
def test_a_card_has_one_gate_however_it_is_named(cli, variables):
    # GIVEN a process on a card that it names by its number
    sibling = on_device(cli, BY_NUMBER)
    # WHEN another has a region on the same card, by another name
    region = on_device(cli, variables, "--report", str(cli.folder / "r"), KREX_REGION="whole")
    region.communicate(timeout=60)
    sibling.communicate(timeout=60)
    # THEN it had the first one for a sibling
    [record] = cli.records("r")
    assert (record["device"], record["exclusive"]) == ("sim:1", True)
    assert record["siblings"]["processes"] == 1


def test_a_name_of_another_card_is_noticed(cli):
    # GIVEN the same, but with the other card's name
    sibling = on_device(cli, BY_NUMBER)
    other = {"HIP_VISIBLE_DEVICES": names(0)[1]}
    region = on_device(cli, other, "--report", str(cli.folder / "r"), KREX_REGION="whole")
    region.communicate(timeout=60)
    sibling.communicate(timeout=60)
    # THEN its region is not called exclusive
    [record] = cli.records("r")
    assert (record["exclusive"], record["reasons"]) == (False, ["context_on_other_device"])
