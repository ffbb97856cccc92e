# SPDX-License-Identifier: Apache-2.0
"""KREX_REGION=nvtx:RANGE: NVTX ranges as marks, as the package `nvtx` makes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex

pytest.importorskip("nvtx")
PROGRAM = Path(__file__).with_name("nvtx_program.py")


def run(cli: Krex, way: str, region: str, **env: str) -> tuple[list[dict[str, Any]], str]:
    """The records of the regions, and stderr."""
    command = ("run", "--sim", "--report", "r", "--", sys.executable, str(PROGRAM), way)
    (cli.folder / "r").write_text("")
    result = cli(*command, env=cli.env | {"KREX_REGION": region} | env)
    assert result.returncode == 0, result.stderr
    return [r for r in cli.records("r") if r["schema"] == "krex.region"], result.stderr


@pytest.mark.parametrize(
    ("way", "region", "pairs"),
    [
        ("pushed", "nvtx:bench", 1),
        ("another", "nvtx:bench", None),
        ("another", "nvtx:bench,nvtx:other", 1),
        ("nested", "nvtx:bench", 2),
        ("nested", "nvtx:outer", 4),
        ("nested", "nvtx:outer,nvtx:bench", 4),
        ("in_domain", "nvtx:bench", 1),
        ("in_domain", "nvtx:bench@lab", 1),
        ("in_domain", "nvtx:bench@shop", None),
        ("pushed", "nvtx:bench@lab", None),
        ("domains_interleaved", "nvtx:bench", None),
        ("domains_interleaved", "nvtx:other", 1),
        ("started", "nvtx:bench", 1),
        ("started", "nvtx:other", 2),
        ("wide_name", "nvtx:größe", 1),
        ("marked", "nvtx:bench", None),
        ("thread_ends_inside", "nvtx:bench", 1),
    ],
)
def test_a_range_of_that_name_is_a_region(cli, way, region, pairs):
    # GIVEN a program with ranges, and a KREX_REGION that names one, or none of them
    report, _ = run(cli, way, region)
    # THEN what is timed in that one is in a region, and there is no other
    assert [r["timing"]["timed_pairs_inside"] for r in report] == ([] if pairs is None else [pairs])
    assert all((r["marker"], r["exclusive"]) == ("nvtx", True) for r in report)


def test_what_is_timed_after_the_range_is_outside(cli):
    # GIVEN a program that times before, in and after the range
    command = ("run", "-q", "--sim", "--report", "r", "--", sys.executable, str(PROGRAM), "nested")
    assert cli(*command, env=cli.env | {"KREX_REGION": "nvtx:bench"}).returncode == 0
    # THEN the command has the two outside
    summary = cli.records("r")[-1]
    assert (summary["timed_pairs_total"], summary["timed_pairs_outside"]) == (4, 2)


def test_another_tool_of_the_users_stays(cli, tmp_path):
    # GIVEN a user who has a tool for NVTX
    tool = str(tmp_path / "tool.so")
    # WHEN ranges are to mark THEN that is said, and nothing is marked
    report, said = run(cli, "marked", "nvtx:bench", NVTX_INJECTION64_PATH=tool)
    assert report == []
    assert "NVTX_INJECTION64_PATH names another tool" in said
