# SPDX-License-Identifier: Apache-2.0
"""Did anything of another process reach a device while a region had it alone?

The devices' own log against the records of the regions. A region that says that it was exclusive
claims that from its grant to its release
- G1: no command of a process outside the holder arrived;
- G2: none of such a process's was on the device.
To touch at an edge is not to overlap.
"""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from krex.errors import UsageError
from krex.sim.log import COLUMNS, WORK, Interval, Log

SCHEMA: Final = "krex.sim-check"
SCHEMA_VERSION: Final = 1

Count = Annotated[int, Meta(ge=0)]


class Region(Struct, kw_only=True, frozen=True):
    """What a record claims."""

    region_id: str
    command: str
    device: str
    granted_ns: int
    released_ns: int
    holder_pids: frozenset[int]
    earlier: tuple[Region, ...] = ()  # the same region's, in the holds that it had before


class Violation(Struct, kw_only=True, frozen=True):
    """A command of another process in an exclusive region."""

    invariant: Annotated[
        Literal["G1", "G2"],
        Meta(description="G1: it arrived in the region. G2: it was on the device in it."),
    ]
    device: Annotated[str, Meta(description="The device's key.")]
    region_id: Annotated[str, Meta(description="The region, as its record names it.")]
    command: Annotated[str, Meta(description="The command that held the device.")]
    granted_ns: Annotated[int, Meta(description="The region's grant, CLOCK_MONOTONIC.")]
    released_ns: Annotated[int, Meta(description="Its release.")]
    pid: Annotated[int, Meta(description="The other process.")]
    kind: Annotated[str, Meta(description="What its command was, as in the log.")]
    name: Annotated[str, Meta(description="The kernel's name; may be empty.")]
    seq: Annotated[int, Meta(description="The command's number in its process.")]
    arrival_ns: Annotated[int, Meta(description="When it was submitted.")]
    start_ns: Annotated[int, Meta(description="Since when it was on the device.")]
    end_ns: Annotated[int, Meta(description="Until when it was.")]


class Check(Struct, omit_defaults=True, kw_only=True):
    """What came of it."""

    schema: Annotated[Literal["krex.sim-check"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    simulated: Annotated[
        bool, Meta(description="True, always: these are results of simulated devices.")
    ]
    regions: Annotated[Count, Meta(description="Records of regions on simulated devices.")]
    exclusive: Annotated[Count, Meta(description="Those that say that they were exclusive.")]
    commands: Annotated[Count, Meta(description="Intervals of work in the log.")]
    covered_ns: Annotated[
        int | UnsetType,
        Meta(description="Up to when the log is whole. Absent: it does not say."),
    ] = UNSET
    uncovered: Annotated[
        Count,
        Meta(description="Exclusive regions that end later than that: nothing is proven of them."),
    ]
    after_log: Annotated[
        Count,
        Meta(
            description="Those of them that begin when the log has ended altogether: it may be of "
            "another run."
        ),
    ]
    heavy_beside: Annotated[
        Count,
        Meta(
            description="Makings of contexts, and loads of code, of other processes that were "
            "under way in an exclusive region. They are no violations."
        ),
    ]
    violations: Annotated[list[Violation], Meta(description="All that was found.")]

    @property
    def is_clean(self) -> bool:
        """Whether all is proven that the records say."""
        return not self.violations and not self.uncovered


class NothingToCheckError(UsageError):
    """Reports without a region that the log could be of."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        super().__init__(
            "nothing to check: no record of a region on a simulated device in "
            + ", ".join(map(str, paths)),
            "give what `krex run --sim --report` wrote of a command that marks a region",
        )


class SwappedError(UsageError):
    """A log in the place of a report."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"{path} is a log of simulated devices, not a report",
            "the order is `krex sim check LOG REPORT...`",
        )


class RecordError(UsageError):
    """A file that has not what is needed of the records of regions."""

    def __init__(self, path: str | Path, number: int, why: str) -> None:
        super().__init__(
            f"{path}, line {number}: {why}",
            "give files that `krex run --report` of this version wrote",
        )


def read_reports(paths: Iterable[str | Path]) -> list[tuple[bool, Region | None]]:
    """What `read_records` gives of all. Raises NothingToCheckError if that is nothing."""
    paths = list(paths)
    records = [record for path in paths for record in read_records(path)]
    if not records:
        raise NothingToCheckError(paths)
    return records


def read_records(path: str | Path) -> Iterator[tuple[bool, Region | None]]:
    """For each region on a simulated device, whether it was exclusive, and if so what it claims.

    Raises RecordError, or SwappedError for a log.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(path, 0, str(error)) from None
    if lines[:1] == ["\t".join(COLUMNS)]:
        raise SwappedError(path)
    for number, line in enumerate(lines, 1):
        if line.strip():
            record = _record(path, number, line)
            if record.get("schema") == "krex.region" and _is_simulated(record):
                exclusive = record.get("exclusive") is True
                yield exclusive, _claim(path, number, record) if exclusive else None


def _record(path: str | Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise RecordError(path, number, f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise RecordError(path, number, "not an object")
    return record


def _is_simulated(record: dict[str, Any]) -> bool:
    return str(record.get("device", "")).startswith("sim:")


def _claim(path: str | Path, number: int, record: dict[str, Any]) -> Region:
    try:
        return Region(
            region_id=str(record["region_id"]),
            command=str(record["command"]),
            device=str(record["device"]),
            granted_ns=int(record["granted_ns"]),
            released_ns=int(record["released_ns"]),
            holder_pids=frozenset(map(int, record["holder_pids"])),
            earlier=tuple(_earlier(path, number, record)),
        )
    except KeyError as error:
        raise RecordError(path, number, f"an exclusive region without {error}") from None
    except (TypeError, ValueError) as error:
        raise RecordError(path, number, str(error)) from None


def _earlier(path: str | Path, number: int, record: dict[str, Any]) -> Iterator[Region]:
    for hold in record.get("earlier_holds", ()):
        yield _claim(path, number, {**record, "earlier_holds": (), **hold})


class _Regions:
    """The exclusive regions of one device, by time."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._regions = sorted(regions, key=lambda region: region.granted_ns)
        self._granted = [region.granted_ns for region in self._regions]
        # The latest release so far: where that is too early, nothing before can be late enough.
        self._released = list(accumulate((r.released_ns for r in self._regions), max))

    def overlapping(self, begin: int, end: int) -> Iterator[Region]:
        """Those that have something of (begin, end), which may be one point, inside them."""
        i = bisect.bisect_left(self._granted, end)
        while i > 0 and self._released[i - 1] > begin:
            i -= 1
            if self._regions[i].released_ns > begin:
                yield self._regions[i]


def check(log: Log, records: Iterable[tuple[bool, Region | None]]) -> Check:
    """Hold every exclusive region against the log."""
    seen = list(records)
    claims = [claim for _, claim in seen if claim]
    by_device: defaultdict[str, list[Region]] = defaultdict(list)
    for claim in claims:
        by_device[claim.device].extend((claim, *claim.earlier))
    devices = {device: _Regions(regions) for device, regions in by_device.items()}
    covered_ns = log.covered_ns or 0
    end_ns = max([covered_ns, *(interval.end_ns for interval in log.intervals)])
    result = Check(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        simulated=True,
        regions=len(seen),
        exclusive=len(claims),
        commands=sum(interval.kind in WORK for interval in log.intervals),
        covered_ns=UNSET if log.covered_ns is None else log.covered_ns,
        uncovered=sum(claim.released_ns > covered_ns for claim in claims),
        after_log=sum(claim.granted_ns > end_ns for claim in claims),
        heavy_beside=0,
        violations=[],
    )
    for interval in log.intervals:
        if interval.device in devices:
            _hold_against(result, devices[interval.device], interval)
    return result


def _hold_against(result: Check, regions: _Regions, interval: Interval) -> None:
    begin = min(interval.arrival_ns, interval.start_ns)
    for region in regions.overlapping(begin, interval.end_ns):
        if interval.pid in region.holder_pids:
            continue
        broken = _broken(region, interval)
        if interval.kind in WORK:
            result.violations.extend(_violation(which, region, interval) for which in broken)
        else:
            result.heavy_beside += bool(broken)


def _broken(region: Region, interval: Interval) -> list[Literal["G1", "G2"]]:
    broken: list[Literal["G1", "G2"]] = []
    if region.granted_ns < interval.arrival_ns < region.released_ns:
        broken.append("G1")
    if region.granted_ns < interval.end_ns and interval.start_ns < region.released_ns:
        broken.append("G2")
    return broken


def _violation(which: Literal["G1", "G2"], region: Region, interval: Interval) -> Violation:
    return Violation(
        invariant=which,
        device=region.device,
        region_id=region.region_id,
        command=region.command,
        granted_ns=region.granted_ns,
        released_ns=region.released_ns,
        pid=interval.pid,
        kind=interval.kind,
        name=interval.name,
        seq=interval.seq,
        arrival_ns=interval.arrival_ns,
        start_ns=interval.start_ns,
        end_ns=interval.end_ns,
    )


def _render_uncovered(result: Check) -> Iterator[str]:
    if result.after_log:
        yield f"the log ends before {_exclusive(result.after_log)}: is it of another run?"
    if rest := result.uncovered - result.after_log:
        yield (
            f"the log is not whole up to the end of {_exclusive(rest)}: it becomes so when nothing "
            "is on the devices, and when their process ends"
        )


def _exclusive(count: int) -> str:
    return f"{count} exclusive region{'s' * (count != 1)}"


def render(result: Check) -> Iterator[str]:
    """The lines for people."""
    yield (
        f"simulated: {result.regions} regions, {result.exclusive} of them exclusive; "
        f"{result.commands} commands on the devices"
    )
    for v in result.violations[:20]:
        what = f"process {v.pid}: {v.kind} {v.name}".rstrip()
        happened = "arrived in" if v.invariant == "G1" else "was on the device in"
        yield (
            f"{v.invariant} {v.device}: {what} (its command {v.seq}) {happened} region "
            f"{v.region_id} of command {v.command}: arrival {v.arrival_ns}, on the device "
            f"{v.start_ns} to {v.end_ns}, region {v.granted_ns} to {v.released_ns}"
        )
    if len(result.violations) > 20:
        yield f"and {len(result.violations) - 20} more (--json has all)"
    yield from _render_uncovered(result)
    if result.heavy_beside:
        yield f"{result.heavy_beside} contexts were made, or code loaded, beside exclusive regions"
    yield f"violations: {len(result.violations)}"
