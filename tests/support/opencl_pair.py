# SPDX-License-Identifier: Apache-2.0
"""Runs integration/opencl/pair.py: two processes of one command, one of which enters regions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.command_line import Krex

PAIR = Path(__file__).parents[1] / "integration" / "opencl" / "pair.py"
REGIONS = 3
Interval = list[int]


def run_pair(
    krex: Krex, feature: str, *options: str, holder_asks: tuple[str, ...] = (), **env: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the two found, and the records of the regions, in order. `options` are `krex run`'s."""
    report = krex.folder / "pair.jsonl"
    options = ("--report", str(report), *options)
    child = krex.python(PAIR, feature, str(REGIONS), *holder_asks, options=options, **env)
    out, _ = child.communicate(timeout=100)
    assert child.returncode == 0, out
    records = sorted(krex.records(report.name), key=lambda record: record["index"])
    assert len(records) == REGIONS
    return json.loads(out), records


def inside(region: Interval, commands: list[Interval]) -> list[Interval]:
    """The commands that ran, at least in part, in that region."""
    return [c for c in commands if c[0] < region[1] and c[1] > region[0]]
