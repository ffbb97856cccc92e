# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients of CUDA on the simulated device, without KREX: the driver is right."""

from __future__ import annotations

import pytest
from support.clients import python_with

DRIVER_VERSION = 13000


def test_a_ctypes_script_computes_and_measures(devices):
    # GIVEN a script that knows only the name of the library
    # WHEN it copies, launches, and is called back
    found = devices.python("ctypes_client.py")
    # THEN what it reads is right, and a kernel of 3 ms took 3 ms of device time
    assert found["devices"] == 2
    assert found["version"] == DRIVER_VERSION
    assert found["correct"]
    assert found["spin_ms"] == pytest.approx(3, abs=0.02)
    # AND the event had not happened when it was asked for first, and the calls came in order
    assert found["ready_at_once"] == 600
    assert found["called"] == [1, 2, 3]


def test_a_linked_program_computes_and_measures(devices, linked):
    # GIVEN a C program that has the driver among its libraries
    # WHEN it runs
    found = devices.run(linked)
    # THEN what it reads is right, and a kernel of 2 ms took 2 ms of device time
    assert found["correct"]
    assert found["spin_ms"] == pytest.approx(2, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "packages"),
    [
        ("bindings_client.py", ("cuda-bindings", "nvidia-cuda-nvrtc", "numpy")),
        ("core_client.py", ("cuda-core", "nvidia-cuda-nvrtc", "numpy")),
        ("numba_client.py", ("numba-cuda", "nvidia-cuda-nvrtc", "nvidia-nvvm", "numpy")),
        ("triton_client.py", ("triton",)),
    ],
)
def test_a_package_compiles_and_its_kernel_computes(devices, client, packages):
    # GIVEN a package that compiles kernels, and looks for the driver in its own way
    python = python_with(*packages)
    # WHEN a script compiles a kernel and launches it
    found = devices.python(client, python=python)
    # THEN the kernel was found in what the package made of it, and computed
    assert found["correct"]


def test_a_script_sees_the_devices_that_it_may(devices):
    # GIVEN two devices
    # WHEN scripts are told which they may see, by number and by the beginning of a UUID
    seen = {
        wish: devices.python("visible_client.py", CUDA_VISIBLE_DEVICES=wish)
        for wish in ("1,0", "1", "1,x,0", "0,0", "", "-1", "7")
    }
    uuids = devices.python("visible_client.py")["uuids"]
    by_uuid = devices.python("visible_client.py", CUDA_VISIBLE_DEVICES=f"GPU-{uuids[1]}")
    # THEN they see those, in that order, up to the first word that names none
    assert seen["1,0"]["numbers"] == [1, 0]
    assert seen["1"]["numbers"] == seen["1,x,0"]["numbers"] == by_uuid["numbers"] == [1]
    # AND where there are none, the driver says so
    assert all(seen[wish]["code"] == 100 for wish in ("0,0", "", "-1", "7"))
