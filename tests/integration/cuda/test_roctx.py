# SPDX-License-Identifier: Apache-2.0
"""Ranges of roctx as marks, with a library of that name which counts levels and numbers ranges."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import Krex

PROGRAM = Path(__file__).with_name("roctx_program.py")
LIBRARY = """
static int level; static unsigned long id = 100;
int roctxRangePushA(const char *message) { (void)message; return level++; }
int roctxRangePop(void) { return --level; }
unsigned long roctxRangeStartA(const char *message) { (void)message; return id++; }
void roctxRangeStop(unsigned long ended) { (void)ended; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("roctx") / "libroctx64.so.4"
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libroctx64.so.4", "-o", path, "-xc", "-"]
    subprocess.run(command, input=LIBRARY, text=True, check=True, timeout=60)
    return path


def run(cli: Krex, library: Path, way: str, region: str) -> list[tuple[str, str, int]]:
    """Marker, name and timed pairs of the regions."""
    command = ("run", "-q", "--sim", "--report", "r", "--", sys.executable, str(PROGRAM))
    (cli.folder / "r").write_text("")
    result = cli(*command, str(library), way, env=cli.env | {"KREX_REGION": region})
    assert result.returncode == 0, result.stderr
    regions = [r for r in cli.records("r") if r["schema"] == "krex.region"]
    return [(r["marker"], r["name"], r["timing"]["timed_pairs_inside"]) for r in regions]


@pytest.mark.parametrize("way", ["pushed", "started"])
def test_a_range_of_that_name_is_a_region_and_the_library_has_the_calls(cli, library, way):
    # GIVEN a program with ranges, which checks what its library returns
    # WHEN one of them is asked for THEN what is timed in it is in a region
    assert run(cli, library, way, "nvtx:bench") == [("nvtx", "bench", 1)]


def test_ranges_that_nobody_asks_for_mark_nothing(cli, library):
    # GIVEN the same program, and another range asked for
    assert run(cli, library, "started", "nvtx:third") == []
