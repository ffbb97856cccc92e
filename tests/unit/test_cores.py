# SPDX-License-Identifier: Apache-2.0
"""What a command gets of its device's slice, and when the CPUs are divided anew."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.machines import Machine, server

from krex.controller import cores
from krex.controller.cores import without
from krex.controller.division import Division, allot
from krex.protect import topology
from krex.protect.slices import Refusal, Slice
from krex.record import Cores

PART = Slice(device="pci:a", cpus=(0, 1, 2, 3), reserved=(3,), measuring=(3,), notes=("not_near",))
GPU = "0000:1a:00.0"


def test_a_command_gets_all_but_the_reserved_cpus():
    for theirs in (None, {0, 1, 2, 3}, set(range(64))):
        given = allot(PART, theirs)
        assert (given.cpus, given.reserved, given.part) == ((0, 1, 2), (3,), PART)
        assert given.record == Cores(slice=[0, 1, 2], reserved=[3], notes=["not_near"])


def test_it_stays_inside_the_affinity_that_its_user_chose():
    given = allot(PART, {1, 2, 9})
    assert (given.cpus, given.reserved, given.part) == ((1, 2), (3,), None)
    assert given.record.notes == ["not_near", "reserved_not_allowed"]
    # And with the reserved ones among these, it is pinned there.
    assert allot(PART, {1, 3}).part == PART


@pytest.mark.parametrize("theirs", [{3}, {9}, set()])
def test_with_none_of_the_cpus_it_stays_where_it_is(theirs):
    assert allot(PART, theirs) == cores.Allotment(record=Cores(no_slice="outside_affinity"))


def test_without_a_slice_the_record_says_why():
    refusal = Refusal("pci:a", "too_few_cores", "3 of 4")
    assert allot(refusal, None).record == Cores(no_slice="too_few_cores")
    assert without("cpu:0").record == Cores(no_slice="cores_are_the_device")
    assert without("pci:a").record == Cores(no_slice="preloaded")


@pytest.fixture
def moved(monkeypatch, tmp_path) -> list[set[int]]:
    """A machine with two sockets of 8 cores, and one GPU; where the controller moves to."""
    machine = Machine(tmp_path, server(packages=2, cores=8))
    machine.gpu(GPU, 0, (*range(8), *range(16, 24)))
    root = str(machine.root)
    found: list[set[int]] = []
    for name in ("read", "read_all_pci"):
        real = getattr(topology, name)
        monkeypatch.setattr(topology, name, lambda real=real: real(root))
    one = topology.read_pci
    monkeypatch.setattr(topology, "read_pci", lambda address, _="/": one(address, root))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: found.append(set(cpus)))
    return found


def test_the_gpus_have_their_cpus_whoever_comes_first(moved):
    # GIVEN a device that nobody knows, which comes before the GPU
    division = Division()
    first = division.part("sim:1", in_use=False)
    gpu = division.part(f"pci:{GPU}", in_use=True)
    assert isinstance(first, Slice) and isinstance(gpu, Slice)
    assert not set(first.cpus) & set(gpu.cpus) and set(gpu.cpus) <= {*range(8), *range(16, 24)}
    # THEN the CPUs were divided once, and the controller left those that are reserved
    assert moved == [set(range(32)) - {*first.reserved, *gpu.reserved}]


def test_cpus_are_divided_anew_only_while_nobody_has_any(moved):
    division = Division()
    before = division.part(f"pci:{GPU}", in_use=False)
    late = division.part("sim:1", in_use=True)
    assert isinstance(late, Refusal) and late.reason == "not_planned"
    assert isinstance(division.part("sim:1", in_use=False), Slice)
    # What is planned stays planned.
    assert division.part(f"pci:{GPU}", in_use=False) == before and len(moved) == 2


def test_simulated_devices_have_their_cpus_whichever_is_used_first(moved):
    division = Division()
    beside = ["sim:0", "sim:1"]
    parts = [division.part(key, in_use=key == "sim:0", beside=beside) for key in ("sim:1", "sim:0")]
    first, second = parts
    assert isinstance(first, Slice) and isinstance(second, Slice)
    assert not set(first.cpus) & set(second.cpus) and len(moved) == 1


def test_a_cpu_device_does_not_even_load_the_planner():
    script = (
        "import sys, krex.controller.server; from krex.controller.cores import without;"
        "without('cpu:0'); print([m for m in sys.modules if m.endswith(('slices', 'topology'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=-1, text=True, timeout=60)
    assert done.stdout == "[]\n"
