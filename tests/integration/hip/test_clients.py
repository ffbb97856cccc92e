# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients of HIP on the simulated device, without KREX: the driver is right."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from support.clients import python_with
from support.sim_device import FOLDER, ROOT

RUNTIME_VERSION = 70100000
ARCHITECTURE = "gfx942"
NAMES = ("libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7")


def test_a_ctypes_script_computes_and_measures(devices, code):
    # GIVEN a script that knows only the name of the library
    # WHEN it copies, launches, and is called back
    found = devices.python("ctypes_client.py", code)
    # THEN what it reads is right, and a kernel of 3 ms took 3 ms of device time
    assert found["devices"] == 2
    assert found["version"] == RUNTIME_VERSION
    assert found["correct"]
    assert found["spin_ms"] == pytest.approx(3, abs=0.02)
    # AND the event had not happened when it was asked for first, and the calls came in order
    assert found["ready_at_once"] == 600
    assert found["called"] == [1, 2, 3]


def test_a_compiled_program_computes_and_measures(devices, linked, code):
    # GIVEN a C++ program, compiled by the vendor's header, that registers code as hipcc has it
    # WHEN it launches by <<<>>>, and from a module
    found = devices.run(linked, code)
    # THEN what it reads is right, and a kernel of 2 ms took 2 ms of device time
    assert found["correct"]
    assert found["spin_ms"] == pytest.approx(2, abs=0.02)
    assert found["counter"] == 7
    # AND the properties are where that header has them
    assert found["warp"] == 64
    assert found["architecture"].startswith(ARCHITECTURE)
    assert "simulated" in found["name"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "packages"),
    [
        ("python_client.py", ("hip-python", "numpy")),
        ("triton_client.py", ("triton",)),
    ],
)
def test_a_package_finds_the_runtime_and_its_kernel_computes(devices, code, client, packages):
    # GIVEN a package that looks for the runtime in its own way
    python = python_with(*packages)
    # WHEN a script launches a kernel with it
    found = devices.python(client, code, python=python)
    # THEN the kernel was found in a code object, and computed
    assert found["correct"]
    assert found["architecture"].startswith(ARCHITECTURE)


def test_a_script_sees_the_devices_that_it_may(devices):
    # GIVEN two devices
    # WHEN scripts are told which they may see, by number and by the beginning of a UUID
    def seen(**variables: str):
        return devices.python("visible_client.py", **variables)

    uuids = seen()["uuids"]
    # THEN they see those, in that order, up to the first word that names none
    assert seen(HIP_VISIBLE_DEVICES="1,0")["numbers"] == [1, 0]
    assert seen(CUDA_VISIBLE_DEVICES="1")["numbers"] == [1]
    assert seen(HIP_VISIBLE_DEVICES=f"GPU-{uuids[1]}")["numbers"] == [1]
    # AND HIP's own variable goes before CUDA's, and counts what ROCR's has left
    assert seen(HIP_VISIBLE_DEVICES="0", CUDA_VISIBLE_DEVICES="1")["numbers"] == [0]
    assert seen(ROCR_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="0")["numbers"] == [1]
    # AND where there are none, the runtime says so
    none = seen(ROCR_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="1")
    assert (none["code"], none["numbers"]) == (100, [])


def test_all_names_lead_to_one_library():
    # GIVEN the names that programs ask for
    # WHEN a process loads all of them
    loaded = [ctypes.CDLL(str(FOLDER / name)) for name in NAMES]
    # THEN what it finds under any of them is the same
    addresses = {ctypes.cast(library.hipMalloc, ctypes.c_void_p).value for library in loaded}
    assert len(addresses) == 1


@pytest.mark.parametrize(
    ("release", "node"), [("5", "hip_4.2"), ("5", "hip_5.2"), ("6", "hip_6.5"), ("7", "hip_7.2")]
)
def test_a_program_linked_for_any_release_finds_its_functions(devices, tmp_path, release, node):
    # GIVEN a program that was linked against a release, which gives its functions versions
    name = f"libamdhip64.so.{release}"
    (tmp_path / "real.c").write_text("int hipInit(unsigned flags) { return flags + 41; }")
    (tmp_path / "real.map").write_text(f"{node} {{ global: hipInit; }};")
    (tmp_path / "main.c").write_text("int hipInit(unsigned); int main(void) { return hipInit(0); }")
    link = ("-shared", "-fPIC", f"-Wl,-soname,{name}", "-Wl,--version-script=real.map")
    for words in ((*link, "-o", name, "real.c"), ("-o", "main", "main.c", name)):
        subprocess.run(["gcc", *words], cwd=tmp_path, check=True)
    # WHEN it finds the simulated one
    done = devices.start(tmp_path / "main")
    # THEN it calls that, and the loader has nothing to say
    assert (done.returncode, done.stderr) == (0, "")


def exported(library: Path) -> set[str]:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def test_it_exports_what_the_real_one_does():
    # GIVEN what the real libraries export, as the hooks' list has it
    listed = (ROOT / "shim" / "hip" / "api.def").read_text().splitlines()
    names = {line.split(", ")[2] for line in listed if line.startswith("KREX_HIP_API(")}
    # WHEN the simulated one is looked at
    found = exported(FOLDER / "libamdhip64.so")
    # THEN it has all of that, and nothing else but its mark
    assert names - found == set()
    assert {name for name in found - names if not name.startswith("hip_")} == {
        "krex_sim_device_number"
    }
