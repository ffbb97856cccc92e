# SPDX-License-Identifier: Apache-2.0
"""krex.h: a C or C++ program that links to nothing of KREX, with it and without."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S

SOURCE = Path(__file__).with_name("marks_program.c")
PRINTS = "1\n5\n3\n4\n2\n"
# Position-independent or not, the linker must leave the look-up to the loader.
WAYS = {
    "c": ["cc", "-std=c99"],
    "c-optimised": ["cc", "-O2", "-flto"],
    "c-fixed-address": ["cc", "-O2", "-fno-pie", "-no-pie"],
    "c++": ["c++", "-xc++", "-std=c++11"],
    "c++-fixed-address": ["c++", "-xc++", "-O2", "-fno-pie", "-no-pie"],
}


@pytest.fixture
def vendors(tmp_path: Path) -> dict[str, str]:
    """The environment in which the system's loader finds the PoCL of pyopencl's wheel."""
    pyopencl = pytest.importorskip("pyopencl")
    libraries = sorted(Path(pyopencl.__file__).parent.glob(".libs/libpocl-*.so*"))
    if not libraries:
        pytest.skip("pyopencl is not from a wheel that carries PoCL")
    (tmp_path / "vendors").mkdir()
    (tmp_path / "vendors" / "pocl.icd").write_text(f"{libraries[0]}\n")
    return {"OCL_ICD_VENDORS": str(tmp_path / "vendors")}


def build(krex: Krex, compiler: list[str]) -> Path:
    if not shutil.which(compiler[0]):
        pytest.skip(f"there is no {compiler[0]}")
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no OpenCL headers: apt-get install ocl-icd-opencl-dev")
    include = krex("lib-path", "--include").stdout.strip()
    program = krex.folder / "program"
    words = [*compiler, "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"]
    subprocess.run([*words, f"-I{include}", "-o", program, SOURCE, "-lOpenCL"], check=True)
    return program


@pytest.mark.parametrize("way", WAYS)
def test_a_program_s_marks_are_regions_under_krex_run(krex, vendors, way):
    program = build(krex, WAYS[way])
    krex.env |= vendors
    result = krex("run", "--report", "r", "--", str(program))
    assert (result.returncode, result.stdout, result.stderr) == (0, PRINTS, "")
    # Only the outermost pair counts; a read is a submission too.
    records = krex.records("r")
    assert [(r["name"], r["submissions"]) for r in records] == [("first", 6), ("second", 9)]
    assert [r["reasons"] for r in records if not r["exclusive"]] == []


@pytest.mark.parametrize("way", ["c", "c++-fixed-address"])
def test_the_same_program_runs_without_krex(krex, vendors, way):
    program = build(krex, WAYS[way])
    environment = krex.env | vendors
    del environment["KREX_SOCKET"]
    result = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, PRINTS, "")
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libOpenCL" in listed and "krex" not in listed.replace(str(krex.folder), "")


def test_a_static_program_has_marks_that_do_nothing(krex):
    source = krex.folder / "static.c"
    source.write_text('#include <krex.h>\nint main(void) { krex_begin("r"); krex_end(); }\n')
    include = krex("lib-path", "--include").stdout.strip()
    program = krex.folder / "static"
    subprocess.run(["cc", "-static", f"-I{include}", "-o", program, source], check=True)
    assert subprocess.run([program], timeout=DEADLINE_S).returncode == 0
