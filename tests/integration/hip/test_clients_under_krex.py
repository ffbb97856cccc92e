# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients of HIP under `krex run --sim`, beside a busy command: they find what they do
without KREX, and what they submit passes the gate.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.busy import Busy, is_the_same
from support.clients import python_with
from support.command_line import Krex
from support.sim_device import ROOT

HERE = Path(__file__).parent
BUSY = """
import ctypes, select, sys
from pathlib import Path
from hiprt import function, hip, launch, module, ok
spin = function(module(Path(sys.argv[1]).read_bytes()), "krex_spin")
print("busy", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(20):
        ok(launch(spin, None, ctypes.c_int64(50_000)))
    ok(hip.hipDeviceSynchronize())
"""


@pytest.fixture
def beside(cli: Krex, code: Path) -> Busy:
    return Busy(cli, HERE, "-c", BUSY, code)


CLIENTS = [
    ("ctypes_client.py", ()),
    ("python_client.py", ("hip-python", "numpy")),
    ("triton_client.py", ("triton",)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("client", "packages"), CLIENTS)
def test_a_client_finds_what_it_finds_without_and_is_alone_in_its_region(
    beside, devices, code, client, packages
):
    # GIVEN a client that finds the runtime in its own way, and a busy sibling
    python = python_with(*packages) if packages else sys.executable
    command = (python, str(HERE / "clients" / client), str(code))
    # WHEN it runs as one region
    found = json.loads(beside.run(*command, KREX_REGION="whole"))
    # THEN it finds what it finds without KREX, but for the device that it may not see
    without = devices.run(*command, HIP_VISIBLE_DEVICES="0")
    assert is_the_same(found, without)
    # AND what it submitted was counted, and nobody was beside it
    record = beside.only_record()
    assert (record["exclusive"], record["reasons"]) == (True, [])
    assert record["submissions"] > 0


def test_a_compiled_program_finds_what_it_finds_without(beside, devices, linked, code):
    found = json.loads(beside.run(str(linked), str(code), KREX_REGION="whole"))
    assert is_the_same(found, devices.run(linked, code))
    record = beside.only_record()
    assert (record["exclusive"], record["marker"]) == (True, "whole")
    assert record["submissions"] > 0


@pytest.mark.slow
def test_the_example_measures_what_the_model_says(beside, code):
    # GIVEN the example of a benchmarking command
    python = python_with("hip-python", "numpy")
    example = str(ROOT / "examples" / "bench_hip.py")
    # WHEN it runs beside a busy sibling
    said = beside.run(python, example, "8388608", "20", str(code))
    # THEN its figure is that of the model: 2 us, and 20 us for each of 53 waves
    assert float(said) == pytest.approx(1.062, abs=0.02)
    # AND its region had the device alone
    record = beside.only_record()
    assert (record["exclusive"], record["name"]) == (True, "candidate")
    assert record["submissions"] >= 20
