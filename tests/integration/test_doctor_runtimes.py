# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of CUDA and HIP: by the simulated libraries, and by what is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support.sim_device import FOLDER, ROOT, Device

from krex.doctor.report import Check

LIBRARY = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so"}
VERSION = {"cuda": "NVIDIA runtime 13.0", "hip": "AMD runtime 7.1"}
ASK = (
    "import sys, msgspec; from krex.doctor import runtimes; "
    "sys.stdout.buffer.write(msgspec.json.encode(getattr(runtimes, sys.argv[1])()))"
)


def check(api: str, folder: Path, **environment: str) -> Check:
    """What the doctor finds where libraries are looked for in this folder first."""
    env = {name: value for name, value in os.environ.items() if not name.endswith("_DEVICES")}
    env.pop("KREX_SIM_SOCKET", None)
    env |= {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", ASK, f"check_{api}"]
    done = subprocess.run(command, env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Check)


@pytest.mark.parametrize("api", LIBRARY)
def test_a_runtime_without_a_device_warns_and_says_what_to_do(api):
    # GIVEN a vendor's library, and no device
    # WHEN the doctor looks
    found = check(api, FOLDER)
    # THEN it names the version and the error, and says how to see a GPU, or to do without
    assert (found.status, found.needed) == ("warning", False)
    assert VERSION[api] in found.detail
    assert "no device" in found.detail
    assert f"programs that use {api.upper()} fail" in found.detail
    assert "krex run --sim" in found.fix


@pytest.mark.parametrize("api", LIBRARY)
def test_devices_are_listed_by_their_addresses(api, place):
    # GIVEN two devices
    device = Device(place, Path(), "--devices", "2")
    try:
        # WHEN the doctor looks
        found = check(api, FOLDER, KREX_SIM_SOCKET=str(device.socket))
    finally:
        device.close()
    # THEN it lists both
    assert found.status == "ok"
    assert "pci:0000:10:00.0" in found.detail
    assert "pci:0000:11:00.0" in found.detail


@pytest.mark.parametrize("api", LIBRARY)
def test_a_library_that_cannot_be_loaded_is_told_from_none(api, tmp_path):
    # GIVEN a file of the library's name that is none
    (tmp_path / LIBRARY[api]).write_text("not a library")
    # WHEN the doctor looks
    found = check(api, tmp_path)
    # THEN it says so, and why
    assert found.status == "warning"
    assert str(tmp_path / LIBRARY[api]) in found.detail
