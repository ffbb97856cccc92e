# SPDX-License-Identifier: Apache-2.0
"""G1 by whichever ICD loader a program reaches OpenCL: the wheel's, the distribution's, or both."""

import ctypes.util
import json
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("loader_program.c")
SYSTEM = "linked"


def wheel_file(pattern: str) -> str:
    """A library that pyopencl's wheel carries."""
    import pyopencl

    folder = Path(pyopencl.__file__).parent / ".libs"
    found = sorted(map(str, folder.glob(pattern)))
    if not found:
        pytest.skip(f"this pyopencl carries no {pattern}")
    return found[0]


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[bool, Path]:
    """Compile the program: linked with the distribution's loader, and without any."""
    if not ctypes.util.find_library("OpenCL") or not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no OpenCL loader or headers: apt-get install ocl-icd-opencl-dev")
    folder = tmp_path_factory.mktemp("loader")
    flags = {True: ["-DLINKED", "-lOpenCL"], False: []}
    paths = {linked: folder / f"loader_program-{linked}" for linked in flags}
    for linked, path in paths.items():
        words = ["cc", "-O1", "-o", path, SOURCE, *flags[linked], "-ldl"]
        subprocess.run(words, check=True, timeout=60)
    return paths


@pytest.fixture
def vendors(tmp_path) -> dict[str, str]:
    """Point every loader to the PoCL that the wheel carries."""
    folder = tmp_path / "vendors"
    folder.mkdir()
    folder.joinpath("pocl.icd").write_text(wheel_file("libpocl-*.so*") + "\n")
    return {"OCL_ICD_VENDORS": str(folder)}


@pytest.mark.parametrize("way", ["wheel", "linked", "looked-up", "both"])
def test_every_loader_is_gated(krex, programs, vendors, way):
    wheel = wheel_file("libOpenCL*.so*")
    system = ctypes.util.find_library("OpenCL")
    loaders = {
        "wheel": [wheel],
        "linked": [SYSTEM],
        "looked-up": [system],
        "both": [SYSTEM, wheel],
    }[way]
    words = ["run", "--", str(programs[SYSTEM in loaders]), *loaders]
    # It reads its kernels' times for us, which is no reason to have regions of its own.
    sibling = krex.popen(*krex.base, *words, KREX_REGION="none", **vendors)
    assert sibling.stdout.readline() == "busy\n"
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=5)
    regions = json.loads(holder.communicate(timeout=60)[0])["regions"]
    kernels, _ = sibling.communicate(timeout=60)
    # THEN the sibling computed what it would have without KREX,
    assert sibling.returncode == 0 and holder.returncode == 0
    # was seen by each region, beside which it was busy,
    records = krex.records("h.jsonl")
    assert [r["siblings"]["processes"] for r in records] == [1] * 5
    assert any(r["siblings"]["drained"] for r in records)
    # and ran no kernel inside one that was reported exclusive.
    assert sum(r["exclusive"] for r in records) >= 4, [r["reasons"] for r in records]
    for region, record in zip(regions, records, strict=True):
        inside = [k for k in json.loads(kernels) if k[0] < region[1] and k[1] > region[0]]
        assert not record["exclusive"] or inside == []
