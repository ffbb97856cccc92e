# SPDX-License-Identifier: Apache-2.0
"""`krex eval`: what it reports is measured, complete and consistent. How much it is, `make bench` says."""  # noqa: E501

import json
import os
import subprocess
import sys

import pytest

from krex.eval.overhead import APIS

OVERHEAD = ("direct_ns", "control_ns", "added_ns", "added_in_region_ns", "added_full_fence_ns")


def krex(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "krex.cli", "eval", *words]
    return subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module", params=APIS)
def overhead(request) -> dict:
    words = ("overhead", "--device", request.param, "--rounds", "15", "--json")
    found = json.loads(krex(*words).stdout)
    assert ("lookup_ns" in found) == bool(APIS[request.param].driver)
    return found


def test_overhead_reports_every_case(overhead):
    assert overhead["schema"] == "krex.eval.overhead" and overhead["schema_version"] == 1
    assert set(OVERHEAD) <= overhead.keys()
    for name in OVERHEAD:
        quartiles = overhead["quartiles_ns"][name.removesuffix("_ns")]
        assert quartiles["q1"] <= quartiles["median"] == overhead[name] <= quartiles["q3"]


def test_overhead_reports_what_a_lookup_takes_where_it_finds_a_driver(overhead):
    found = {name for name in overhead if "lookup" in name}
    if "lookup_ns" in found:
        assert found == {"lookup_ns", "added_to_lookup_ns", "added_to_other_lookup_ns"}
        assert overhead["lookup_ns"] > 0 and overhead["added_to_lookup_ns"] > 0
    else:
        assert not found and set(overhead["quartiles_ns"]) == {n[:-3] for n in OVERHEAD}


def test_a_limit_is_an_exit_status():
    beyond = krex("overhead", "--rounds", "31", "--limit", "0")
    assert beyond.returncode == 1 and "more than 0 ns" in beyond.stderr
    assert krex("overhead", "--rounds", "2", "--limit", "1e9").returncode == 0


def test_startup_reports_a_running_controllers_cost(tmp_path):
    tmp_path.chmod(0o700)
    socket = {"KREX_SOCKET": str(tmp_path / "s")}
    result = krex("startup", "--rounds", "2", "--json", **socket)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["added_ms"] > 0 and found["rounds"] == 2
