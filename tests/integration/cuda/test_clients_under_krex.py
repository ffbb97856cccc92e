# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients of CUDA under `krex run --sim`, beside a busy command: they find what they do
without KREX, and what they submit passes the gate.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.busy import Busy, is_the_same
from support.clients import python_with
from support.command_line import Krex
from support.sim_device import ROOT

HERE = Path(__file__).parent
BUSY = """
import ctypes, select, sys
from cu import cu, function, get, launch, module, ok
ok(cu.cuInit(0))
get("cuCtxCreate_v2", 0, 0)
spin = function(module(), "krex_spin")
print("busy", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(20):
        ok(launch(spin, None, ctypes.c_uint64(50_000)))
    ok(cu.cuCtxSynchronize())
"""


@pytest.fixture
def beside(cli: Krex) -> Iterator[Busy]:
    return Busy(cli, HERE, "-c", BUSY)


CLIENTS = [
    ("ctypes_client.py", ()),
    ("bindings_client.py", ("cuda-bindings", "nvidia-cuda-nvrtc", "numpy")),
    ("core_client.py", ("cuda-core", "nvidia-cuda-nvrtc", "numpy")),
    ("numba_client.py", ("numba-cuda", "nvidia-cuda-nvrtc", "nvidia-nvvm", "numpy")),
    ("triton_client.py", ("triton",)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("client", "packages"), CLIENTS)
def test_a_client_finds_what_it_finds_without_and_is_alone_in_its_region(
    beside, devices, client, packages
):
    # GIVEN a client that finds the driver in its own way, and a busy sibling
    python = python_with(*packages) if packages else sys.executable
    script = HERE / "clients" / client
    # WHEN it runs as one region
    found = json.loads(beside.run(python, str(script), KREX_REGION="whole"))
    # THEN it finds what it finds without KREX
    assert is_the_same(found, devices.run(python, script))
    # AND what it submitted was counted, and nobody was beside it
    record = beside.only_record()
    assert (record["exclusive"], record["reasons"]) == (True, [])
    assert record["submissions"] > 0


def test_a_linked_program_finds_what_it_finds_without(beside, devices, linked):
    found = json.loads(beside.run(str(linked), KREX_REGION="whole"))
    assert is_the_same(found, devices.run(linked))
    record = beside.only_record()
    assert (record["exclusive"], record["marker"]) == (True, "whole")
    assert record["submissions"] > 0


@pytest.mark.slow
def test_the_example_measures_what_the_model_says(beside):
    # GIVEN the example of a benchmarking command
    python = python_with("cuda-bindings", "nvidia-cuda-nvrtc", "numpy")
    # WHEN it runs beside a busy sibling
    said = beside.run(python, str(ROOT / "examples" / "bench_cuda.py"), "1048576", "20")
    # THEN its figure is that of the model: 2 us, and 20 us for each of 7 waves
    assert float(said) == pytest.approx(0.142, abs=0.02)
    # AND its region had the device alone
    record = beside.only_record()
    assert (record["exclusive"], record["name"]) == (True, "candidate")
    assert record["submissions"] >= 20
