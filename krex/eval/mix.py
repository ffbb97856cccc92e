# SPDX-License-Identifier: Apache-2.0
"""Many typical commands at once: how many of their regions are exclusive, and is that true?

The commands of `krex eval mix` import, compile, check and time real kernels on an OpenCL CPU
device. They run three times: together under KREX, and twice one by one without it. The
device's own timestamps say whether a sibling's kernel ran inside a region called exclusive.
What was measured under KREX is compared with the first solo run, candidate by candidate; the second
solo run says how far two measurements lie apart on this machine when nobody disturbs them.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from krex.errors import KrexError
from krex.eval.statistics import percentile

SCHEMA: Final = "krex.eval.mix"
SCHEMA_VERSION: Final = 1
_LIMIT_S = 1800.0


class Mix(msgspec.Struct, kw_only=True):
    """All commands at once, and each alone."""

    schema: Annotated[Literal["krex.eval.mix"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    commands: Annotated[int, Meta(description="How many ran at once.")]
    regions: Annotated[int, Meta(description="How many they had, together.")]
    exclusive: Annotated[int, Meta(description="How many of those were.")]
    falsely_exclusive: Annotated[
        int, Meta(description="Exclusive, and yet a sibling's kernel ran inside.")
    ]
    reasons: Annotated[dict[str, int], Meta(description="Why the others were not, and how often.")]
    together_s: Annotated[float, Meta(description="Seconds: all commands at once, under KREX.")]
    one_by_one_s: Annotated[
        float, Meta(description="Seconds: one by one, without, the second time.")
    ]
    solo_ratio: Annotated[
        list[float],
        Meta(
            description="Duration in the second solo run against the first: least, median, 95th "
            "percentile, most."
        ),
    ]
    krex_ratio: Annotated[
        list[float], Meta(description="The same of the exclusive regions, under KREX.")
    ]
    inside_solo_range: Annotated[
        float, Meta(description="Share of the exclusive regions within the range of solo_ratio.")
    ]


def measure(commands: int, regions: int) -> Mix:
    """Run all three. Raises KrexError if a command fails."""
    with tempfile.TemporaryDirectory(prefix="krex-eval-") as name:
        folder = Path(name)
        first, _ = _one_by_one(folder, commands, regions)  # fills the runtime's kernel cache
        started = time.monotonic()
        shared, records = _together(folder, commands, regions)
        together_s = time.monotonic() - started
        second, one_by_one_s = _one_by_one(folder, commands, regions)
    solo = _ratios(second, first, [[True] * regions] * commands)
    exclusive = [[r["exclusive"] for r in group] for group in records]
    krex = _ratios(shared, first, exclusive)
    reasons = [reason for group in records for r in group for reason in r["reasons"]]
    return Mix(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        commands=commands,
        regions=commands * regions,
        exclusive=sum(map(sum, exclusive)),
        falsely_exclusive=_falsely_exclusive(shared, exclusive),
        reasons=dict(collections.Counter(reasons)),
        together_s=together_s,
        one_by_one_s=one_by_one_s,
        solo_ratio=_summary(solo),
        krex_ratio=_summary(krex),
        inside_solo_range=sum(min(solo) <= r <= max(solo) for r in krex) / len(krex),
    )


Output = dict[str, Any]


def _command(number: int, regions: int, output: Path) -> list[str]:
    words = [str(number), str(regions), str(output)]
    return [sys.executable, "-m", "krex.eval.mix_work", *words]


def _one_by_one(folder: Path, commands: int, regions: int) -> tuple[list[Output], float]:
    output, started, found = folder / "solo", time.monotonic(), []
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    for number in range(commands):
        command = _command(number, regions, output)
        if subprocess.run(command, env=environment, timeout=_LIMIT_S, check=False).returncode:
            raise KrexError("a command failed alone", f"run it: {' '.join(command)}")
        found.append(json.loads(output.read_text()))
    return found, time.monotonic() - started


def _together(
    folder: Path, commands: int, regions: int
) -> tuple[list[Output], list[list[dict[str, Any]]]]:
    """What the commands measured, and their records, both in the order of their regions."""
    environment = os.environ | {"KREX_SOCKET": str(folder / "s")}
    run = [sys.executable, "-m", "krex.cli", "run", "--quiet", "--report"]
    started = [
        subprocess.Popen(
            [*run, str(folder / f"r{n}"), "--", *_command(n, regions, folder / f"o{n}")],
            env=environment,
        )
        for n in range(commands)
    ]
    try:
        statuses = [process.wait(_LIMIT_S) for process in started]
    finally:
        for process in started:
            process.terminate()  # those that run still, when we are ended
    if any(statuses):
        raise KrexError("a command failed under KREX", "see what it said above")
    outputs = [json.loads((folder / f"o{n}").read_text()) for n in range(commands)]
    reports = [(folder / f"r{n}").read_text().splitlines() for n in range(commands)]
    records = [sorted(map(json.loads, lines), key=lambda r: r["index"]) for lines in reports]
    if any(len(group) != regions for group in records):
        raise KrexError("a region has no record", "report it, please")
    return outputs, records


def _ratios(found: list[Output], base: list[Output], counted: list[list[bool]]) -> list[float]:
    return [
        mine["duration_ns"] / its["duration_ns"]
        for a, b, flags in zip(found, base, counted, strict=True)
        for mine, its, flag in zip(a["regions"], b["regions"], flags, strict=True)
        if flag
    ]


def _falsely_exclusive(outputs: list[Output], exclusive: list[list[bool]]) -> int:
    kernels = [[*o["outside"], *(k for r in o["regions"] for k in r["kernels"])] for o in outputs]
    count = 0
    for number, (output, flags) in enumerate(zip(outputs, exclusive, strict=True)):
        others = [k for n, group in enumerate(kernels) if n != number for k in group]
        for region, flag in zip(output["regions"], flags, strict=True):
            overlap = any(k[0] < region["end"] and k[1] > region["begin"] for k in others)
            count += flag and overlap
    return count


def _summary(ratios: list[float]) -> list[float]:
    return [min(ratios), percentile(ratios, 50), percentile(ratios, 95), max(ratios)]
