# SPDX-License-Identifier: Apache-2.0
"""G6: a submission that the shim cannot see makes no region beside it, or of it, exclusive."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.opencl_pair import REGIONS, run_pair

STUB = Path(__file__).with_name("stub_driver.c")
HEADERS = Path(__file__).parents[3] / "shim"


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """A folder that tells a loader of a driver that has what PoCL has not."""
    folder = tmp_path_factory.mktemp("drivers")
    compiler = shutil.which("gcc") or shutil.which("cc") or pytest.skip("no C compiler")
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{HEADERS}"]
    library = folder / "libstub.so"
    subprocess.run([compiler, *flags, str(STUB), "-o", str(library)], check=True)
    (folder / "stub.icd").write_text(str(library))
    return folder


@pytest.mark.parametrize("feature", ["unlisted", "unlisted_any", "unheard_of"])
def test_a_sibling_that_asked_for_one_spoils_a_region(krex, drivers, feature):
    found, records = run_pair(krex, feature, OCL_ICD_VENDORS=str(drivers))
    assert [record["reasons"] for record in records] == [["unlisted_submission"]] * REGIONS
    assert found["sibling"]["right"]


def test_a_holder_that_asked_for_one_has_no_exclusive_region(krex, drivers):
    asks = ("clEnqueueMemFillINTEL",)
    _, records = run_pair(krex, "listed", holder_asks=asks, OCL_ICD_VENDORS=str(drivers))
    assert [record["reasons"] for record in records] == [["unlisted_submission"]] * REGIONS


@pytest.mark.parametrize("feature", ["listed", "not_there"])
def test_what_submits_nothing_spoils_nothing(krex, drivers, feature):
    found, records = run_pair(krex, feature, OCL_ICD_VENDORS=str(drivers))
    assert [record["reasons"] for record in records] == [[]] * REGIONS
    assert found["sibling"]["right"]
