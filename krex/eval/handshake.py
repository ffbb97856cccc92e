# SPDX-License-Identifier: Apache-2.0
"""How long a region waits for its grant, and the others for its end: `krex eval handshake`.

Real commands under a controller of their own: siblings that keep a core busy, and a holder that
enters one short region after another. The figures are those of its region records. Clean siblings
submit nothing; dirty ones submit short kernels all the time: there the drain waits for the longest.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from krex.errors import KrexError
from krex.eval.statistics import percentile

SCHEMA: Final = "krex.eval.handshake"
SCHEMA_VERSION: Final = 1
SIBLINGS = (0, 1, 8, 16)
STEPS = ("heavy_s", "in_flight_s", "drain_s", "freeze_s")
_START_S = 120.0


class Handshakes(msgspec.Struct, kw_only=True):
    """One holder beside so many siblings."""

    schema: Annotated[
        Literal["krex.eval.handshake"], Meta(description="What kind of object this is.")
    ]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    siblings: Annotated[int, Meta(description="How many commands with one busy process each.")]
    regions: Annotated[int, Meta(description="How many regions the holder entered.")]
    exclusive: Annotated[int, Meta(description="How many of them were; the times are of those.")]
    grant_s_p50: Annotated[
        float, Meta(description="Seconds from the request to the grant: median.")
    ]
    grant_s_p99: Annotated[float, Meta(description="The same, 99th percentile.")]
    release_s_p50: Annotated[
        float, Meta(description="Seconds from the end until the siblings ran on: median.")
    ]
    release_s_p99: Annotated[float, Meta(description="The same, 99th percentile.")]
    steps_s_p50: Annotated[
        dict[str, float], Meta(description="Seconds of each of the handshake's steps: median.")
    ]
    dirty_exclusive: Annotated[
        int | UnsetType,
        Meta(description="Beside siblings that submit all the time: how many were exclusive."),
    ] = UNSET
    dirty_grant_s_p50: Annotated[
        float | UnsetType, Meta(description="Seconds from the request to the grant: median.")
    ] = UNSET
    dirty_grant_s_p99: Annotated[
        float | UnsetType, Meta(description="The same, 99th percentile.")
    ] = UNSET
    dirty_drain_s_p50: Annotated[
        float | UnsetType, Meta(description="Of that, the wait for outstanding work: median.")
    ] = UNSET
    dirty_release_s_p50: Annotated[
        float | UnsetType,
        Meta(description="Seconds from the end until the siblings ran on: median."),
    ] = UNSET


def measure(siblings: Sequence[int], regions: int, *, dirty: bool) -> Iterator[Handshakes]:
    """One result after the other. Raises KrexError if a command fails."""
    for count in siblings:
        clean = _run(count, regions, "clean")
        result = Handshakes(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            siblings=count,
            regions=regions,
            exclusive=sum(r["exclusive"] for r in clean),
            grant_s_p50=percentile(_times(clean, "wait_s"), 50),
            grant_s_p99=percentile(_times(clean, "wait_s"), 99),
            release_s_p50=percentile(_times(clean, "release_s"), 50),
            release_s_p99=percentile(_times(clean, "release_s"), 99),
            steps_s_p50={
                step: percentile([r["handshake"][step] for r in _granted(clean)], 50)
                for step in STEPS
            },
        )
        if dirty and count:
            _add_dirty(result, _run(count, regions, "dirty"))
        yield result


def _add_dirty(result: Handshakes, records: list[dict[str, Any]]) -> None:
    result.dirty_exclusive = sum(r["exclusive"] for r in records)
    result.dirty_grant_s_p50 = percentile(_times(records, "wait_s"), 50)
    result.dirty_grant_s_p99 = percentile(_times(records, "wait_s"), 99)
    result.dirty_drain_s_p50 = percentile(
        [r["handshake"]["drain_s"] for r in _granted(records)], 50
    )
    result.dirty_release_s_p50 = percentile(_times(records, "release_s"), 50)


def _granted(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in records if r["exclusive"]]


def _times(records: list[dict[str, Any]], key: str) -> list[float]:
    return [r[key] for r in _granted(records)]


def _run(count: int, regions: int, kind: str) -> list[dict[str, Any]]:
    """The records of one holder beside `count` siblings of a kind."""
    with (
        tempfile.TemporaryDirectory(prefix="krex-eval-") as folder,
        contextlib.ExitStack() as stack,
    ):
        environment = os.environ | {"KREX_SOCKET": f"{folder}/s"}
        krex = [sys.executable, "-m", "krex.cli"]
        # A slot for each of them, the holder's included.
        serve = [*krex, "serve", "--slots", str(count + 1)]
        stack.enter_context(_running(serve, environment))
        _wait_until(Path(folder, "s").exists, "the controller does not come up")
        work = [sys.executable, "-m", "krex.eval.handshake_work"]
        for i in range(count):
            ready = str(Path(folder, f"ready-{i}"))
            command = [*krex, "run", "--quiet", "--", *work, kind, ready]
            stack.enter_context(_running(command, environment))
        ready_files = [Path(folder, f"ready-{i}") for i in range(count)]
        _wait_until(lambda: all(f.exists() for f in ready_files), "a sibling does not start")
        report = str(Path(folder, "report"))
        holder = [*krex, "run", "--quiet", "--report", report, "--", *work, "holder", str(regions)]
        try:
            with _running(holder, environment, stderr=None) as process:
                status = process.wait(_START_S + regions)
        except subprocess.TimeoutExpired as error:
            raise KrexError(f"the holder hangs: {error}", "`krex doctor` may say why") from None
        if status:
            raise KrexError(f"the holder failed: status {status}", "`krex doctor` may say why")
        lines = Path(report).read_text().splitlines()
    # The first region finds the siblings as they came; they are clean from then on.
    records: list[dict[str, Any]] = [json.loads(line) for line in lines][1:]
    if not _granted(records):
        reasons = {reason for record in records for reason in record["reasons"]}
        why = ", ".join(sorted(reasons)) or "there was none"
        raise KrexError(
            f"no region was exclusive beside {count} {kind} siblings: {why}",
            "docs/records.md says what to do; `krex doctor` tries out what is needed",
        )
    return records


@contextlib.contextmanager
def _running(
    command: list[str], environment: dict[str, str], stderr: int | None = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """It is asked to end, and not killed: `krex run` then has its command end."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _wait_until(done: Any, failure: str) -> None:
    deadline = time.monotonic() + _START_S
    while not done():
        if time.monotonic() > deadline:
            raise KrexError(failure, "`krex doctor` may say why")
        time.sleep(0.02)
