# SPDX-License-Identifier: Apache-2.0
"""The measurements that run real commands: complete, valid, and true about what they measured."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "krex" / "schemas"


def validated(cli, name: str, *options: str):
    result = cli("eval", name, "--json", *options)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    validator = Draft202012Validator(json.loads((FOLDER / f"eval-{name}.schema.json").read_text()))
    for each in found if isinstance(found, list) else [found]:
        validator.validate(each)
    return found


@pytest.fixture(autouse=True)
def _runtime():
    pytest.importorskip("pyopencl")


def test_handshake_measures_beside_as_many_siblings_as_it_says(cli):
    none, one = validated(cli, "handshake", "--siblings", "0", "--siblings", "1", "--regions", "4")
    assert (none["siblings"], one["siblings"]) == (0, 1)
    assert none["exclusive"] == one["exclusive"] == 4
    # A grant takes at least as long as its steps.
    assert one["grant_s_p50"] >= max(one["steps_s_p50"].values()) > 0
    assert "dirty_grant_s_p50" in one and "dirty_grant_s_p50" not in none


def test_mix_finds_every_region_and_no_false_one(cli):
    found = validated(cli, "mix", "--commands", "3", "--regions", "3")
    assert found["regions"] == 9 and found["falsely_exclusive"] == 0
    assert found["exclusive"] + sum(found["reasons"].values()) >= 9
    assert found["exclusive"] >= 7, found["reasons"]


def test_mix_would_find_a_false_one():
    from krex.eval.mix import _falsely_exclusive

    alone = {"regions": [{"begin": 10, "end": 20, "kernels": [[11, 12]]}], "outside": [[1, 2]]}
    inside = {"regions": [{"begin": 30, "end": 40, "kernels": [[31, 32]]}], "outside": [[19, 25]]}
    assert _falsely_exclusive([alone, inside], [[True], [True]]) == 1
    assert _falsely_exclusive([alone, inside], [[False], [True]]) == 0
