# SPDX-License-Identifier: Apache-2.0
"""`krex audit`: what the records of a report say against its numbers. docs/audit.md lists it.

Every finding rests on what the driver's calls or the controller saw, and none on how fast anything
was. Records of earlier versions lack keys, and give fewer findings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from krex.errors import UsageError
from krex.reasons import REASONS
from krex.timing_record import Count

SCHEMA: Final = "krex.audit"
SCHEMA_VERSION: Final = 1

Record = Mapping[str, Any]
Severity = Literal["note", "warning", "error"]
SEVERITIES: Final = ("note", "warning", "error")
NOISE_FLOOR_S: Final = 1e-4
# A region of which less than this share is timed is too generous, from this length on.
IDLE_SHARE: Final = 0.1
IDLE_LEAST_S: Final = 0.1
# A number that a harness reports may be a minimum, a median or a mean, of pairs or of launches.
REPORTED_BELOW: Final = 0.9  # of the shortest pair
REPORTED_ABOVE: Final = 1.5  # of the mean


class Kind(NamedTuple):
    """What a finding means, wherever it is found."""

    severity: Severity
    meaning: str
    fix: str


KINDS: Final[dict[str, Kind]] = {
    "no_region": Kind(
        "error",
        "There is no region: nothing was marked, so nothing had the device to itself.",
        "Mark the timing loop (`krex.region`), or let KREX_REGION mark it.",
    ),
    "not_exclusive": Kind(
        "error",
        "The region was not exclusive, or not certainly so.",
        "docs/records.md says for each reason what to do; measure again.",
    ),
    "timed_outside": Kind(
        "error",
        "Timed pairs lay outside any region, or across the end of one: nothing protected them. The "
        "region is too narrow, or was left before the measured part.",
        "Mark the whole timing loop, or let KREX_REGION=events mark it.",
    ),
    "no_work_in_region": Kind(
        "warning",
        "Nothing was submitted in the region: what was to be measured is elsewhere.",
        "Mark the part that launches; a child process has to be started inside.",
    ),
    "unread_pairs": Kind(
        "warning",
        "Timing events were recorded in the region, but no pair of them was read before it ended: "
        "nothing of the timing was checked.",
        "Read the events before the region ends.",
    ),
    "no_timing_events": Kind(
        "note",
        "Work was submitted in the region, but no timing event recorded: nothing of the timing was "
        "checked, by whatever clock it was.",
        "Time with the driver's events; by the host's clock, be sure that it waits for the device.",
    ),
    "empty_pair": Kind(
        "error",
        "Nothing was submitted between the two events of a timed pair: it measured nothing.",
        "Launch between the events; look for a result that is cached, or a launch that is skipped.",
    ),
    "uncovered_work": Kind(
        "error",
        "Work went to a stream that the stop event is not behind: it is not in the time.",
        "Have the timed stream wait for an event of the other one before the stop is recorded.",
    ),
    "other_threads": Kind(
        "warning",
        "Other threads submitted between the two events of a timed pair: their work may be in the "
        "time, or be missing from it.",
        "Launch from the thread that times, or end what the others do first.",
    ),
    "work_behind": Kind(
        "note",
        "Work was submitted behind the stop event before it was read: it is not in the time.",
        "Be sure that it is not part of what is measured, such as a result computed late.",
    ),
    "disturbed": Kind(
        "warning",
        "Memory was allocated or code loaded between the two events of a timed pair.",
        "Allocate, compile and load before the start is recorded; warm up once more.",
    ),
    "cold_start": Kind(
        "warning",
        "The first pair timed the process's first launch: loading of code and caches is in it.",
        "Launch once without timing, or discard the first pair.",
    ),
    "below_noise_floor": Kind(
        "warning",
        "A timed pair is shorter than 0.1 ms, where no runtime's events are trustworthy.",
        "Put more launches between the two events, and divide.",
    ),
    "mostly_idle": Kind(
        "note",
        "Less than a tenth of the region was timed: the others waited for nothing.",
        "Mark the timing loop only; compile, check and prepare outside.",
    ),
    "work_at_end": Kind(
        "note",
        "Work was still on the device 0.1 s after the region ended.",
        "Wait for the device before the region ends.",
    ),
    "foreign_process": Kind(
        "error",
        "A process that KREX keeps from nothing had a context on the device.",
        "Start it by `krex run`, or end it.",
    ),
    "out_of_memory": Kind(
        "warning",
        "An allocation was refused while other commands were on the device: what failed for it "
        "may be right.",
        "Run it again alone (`--exclusive command`), or reserve memory (`--mem`).",
    ),
    "frozen_past_limit": Kind(
        "error",
        "The command failed just after it stood still beside another's region: a time limit of its "
        "own may have fired.",
        "Take `frozen_s` from what the limit counts, raise the limit, or run it again.",
    ),
    "waited_past_limit": Kind(
        "error",
        "A time limit of the program's own passed while it waited for the device: what it counted "
        "was that wait, and a handler in Python ran only after it.",
        "Raise the limit by what may be waited, or run fewer commands at once.",
    ),
    "reported_disagrees": Kind(
        "error",
        "The number that the harness reports is not one that the driver's own times allow.",
        "Look for a clock that is stopped before the device is done, or for events swapped.",
    ),
    "reported_unchecked": Kind(
        "warning",
        "The number that the harness reports could not be compared: the region has no timed pair.",
        "Time with the driver's events, and read them before the region ends.",
    ),
}


class Finding(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """Something that speaks against a number."""

    code: Annotated[str, Meta(description="What; docs/audit.md lists them. Further ones may come.")]
    severity: Annotated[
        Severity,
        Meta(
            description="`error`: the number is not to be trusted. `warning`: it may be off. "
            "`note`: look."
        ),
    ]
    command: Annotated[
        str, Meta(description="The command, as in its records. Empty: of the files as a whole.")
    ]
    region_id: Annotated[
        str | UnsetType, Meta(description="The region. Absent: of the command as a whole.")
    ] = UNSET
    name: Annotated[str | UnsetType, Meta(description="The region's name. Absent likewise.")] = (
        UNSET
    )
    pid: Annotated[int | UnsetType, Meta(description="The process. Absent likewise.")] = UNSET
    detail: Annotated[str, Meta(description="What was found, in figures.")]
    meaning: Annotated[str, Meta(description="What it says of the number.")]
    fix: Annotated[str, Meta(description="What to do.")]


class AuditReport(Struct, kw_only=True, frozen=True):
    """What `krex audit --json` prints."""

    schema: Annotated[Literal["krex.audit"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    regions: Annotated[Count, Meta(description="Records of regions that were looked at.")]
    findings: Annotated[list[Finding], Meta(description="In the order of the records.")]

    def reaches(self, severity: str) -> bool:
        """Whether there is a finding so severe, or more."""
        least = SEVERITIES.index(severity)
        return any(SEVERITIES.index(f.severity) >= least for f in self.findings)


def audit(records: Iterable[Record], reported: Mapping[str, float] | None = None) -> AuditReport:
    """Look through records; `reported` are seconds by the name of the region that measured them.

    Raises UsageError if no region has that name.
    """
    regions: list[Record] = []
    findings: list[Finding] = []
    commands: dict[str, Record] = {}
    for record in records:
        if record.get("schema") == "krex.region":
            regions.append(record)
            findings += _of_region(record, reported or {})
        elif record.get("schema") == "krex.command":
            commands[str(record.get("command"))] = record
            findings += _of_command(record)
    _need_names(regions, reported or {})
    if not regions:
        findings.append(_finding("no_region", {"command": ""}, "0 records of regions"))
    findings += _outside(regions, commands)
    return AuditReport(
        schema=SCHEMA, schema_version=SCHEMA_VERSION, regions=len(regions), findings=findings
    )


def _need_names(regions: list[Record], reported: Mapping[str, float]) -> None:
    """A number that nothing was held against must not pass for one that agrees."""
    names = {str(record.get("name")) for record in regions}
    if unknown := sorted(set(reported) - names):
        there = ", ".join(map(repr, sorted(names))) or "none at all"
        raise UsageError(
            f"--reported {unknown[0]}: no region of that name is in the files",
            f"give the name of one that is: there is {there}",
        )


def _of_region(record: Record, reported: Mapping[str, float]) -> Iterator[Finding]:
    for code, look in _LOOKS.items():
        if detail := look(record):
            yield _finding(code, record, detail)
    if (seconds := reported.get(str(record.get("name")))) is not None:
        yield from _of_reported(record, seconds)


def _of_reported(record: Record, seconds: float) -> Iterator[Finding]:
    timing = _timing(record)
    if not timing.get("timed_pairs_inside") or timing.get("shortest_pair_s") is None:
        detail = f"reported {seconds * 1e3:.6g} ms; 0 pairs"
        yield _finding("reported_unchecked", record, detail)
    elif detail := _disagrees(timing, seconds):
        yield _finding("reported_disagrees", record, detail)


def _of_command(record: Record) -> Iterator[Finding]:
    if record.get("limit_suspected") is True:
        stood_s = float(record.get("frozen_s", 0))
        detail = f"status {record.get('status')}, stood still for {stood_s:.3f} s"
        yield _finding("frozen_past_limit", record, detail)
    if waited_s := record.get("limit_wait_s"):
        yield _finding("waited_past_limit", record, f"waited for {waited_s:.3f} s")
    if refused := record.get("oom_while_shared"):
        yield _finding("out_of_memory", record, f"{len(refused)} refused")


def _outside(regions: list[Record], commands: Mapping[str, Record]) -> Iterator[Finding]:
    """By the command's own word; else by the last that its processes' regions knew."""
    for record in commands.values():
        if count := record.get("timed_pairs_outside", 0):
            of = record.get("timed_pairs_total")
            yield _finding("timed_outside", record, f"{count} of {of} pairs")
    last = {(r.get("command"), r.get("pid")): r for r in regions}
    for (command, _), record in last.items():
        timing = _timing(record)
        if str(command) not in commands and (count := timing.get("timed_pairs_outside", 0)):
            of = timing.get("timed_pairs_total")
            yield _finding("timed_outside", record, f"{count} of {of} pairs until its end")


def _finding(code: str, record: Record, detail: str) -> Finding:
    kind = KINDS[code]
    of_region = record.get("schema") == "krex.region"
    return Finding(
        code=code,
        severity=kind.severity,
        command=str(record.get("command")),
        region_id=str(record.get("region_id")) if of_region else UNSET,
        name=str(record.get("name")) if of_region else UNSET,
        pid=int(record.get("pid", 0)) if of_region else UNSET,
        detail=detail,
        meaning=kind.meaning,
        fix=kind.fix,
    )


# What is looked for in a region's record: each says what it found, or nothing.


def _timing(record: Record) -> Mapping[str, Any]:
    timing = record.get("timing")
    return timing if isinstance(timing, dict) else {}


def _pairs(key: str) -> Callable[[Record], str]:
    """So many pairs of the region are of that kind."""

    def look(record: Record) -> str:
        count = _timing(record).get(key, 0)
        return f"{count} of {_timing(record)['timed_pairs_inside']} pairs" if count else ""

    return look


def _not_exclusive(record: Record) -> str:
    if record.get("exclusive") is not False:
        return ""
    reasons = [str(reason) for reason in record.get("reasons", ())]
    known = [REASONS[reason].meaning for reason in reasons[:1] if reason in REASONS]
    return ": ".join([", ".join(reasons), *known])


def _cold(record: Record) -> str:
    return "nothing was launched before it" if _timing(record).get("cold_start") else ""


def _short(record: Record) -> str:
    timing = _timing(record)
    count, shortest_s = timing.get("below_noise_floor", 0), timing.get("shortest_pair_s")
    if not count or not shortest_s:
        return ""
    launches = max(1, int(timing.get("shortest_pair_launches", 1)))
    needed = math.ceil(launches * NOISE_FLOOR_S / shortest_s)
    return (
        f"{count} of {timing['timed_pairs_inside']} pairs, the shortest {shortest_s * 1e6:.1f} us "
        f"with {launches} launched: it takes about {needed} a pair"
    )


def _idle(record: Record) -> str:
    timing, hold_s = _timing(record), record.get("hold_s", 0.0)
    timed_s = timing.get("timed_s", 0.0)
    is_timed = timing.get("timed_pairs_inside", 0) > 0
    if not is_timed or hold_s < IDLE_LEAST_S or timed_s >= IDLE_SHARE * hold_s:
        return ""
    return f"{timed_s:.3f} s of {hold_s:.3f} s"


def _no_work(record: Record) -> str:
    return "0 submissions" if record.get("submissions") == 0 and record.get("exclusive") else ""


def _is_unchecked(record: Record) -> bool:
    """Whether there is work of which no pair tells. Where there is no work, `_no_work` says so."""
    timing = _timing(record)
    return bool(timing and record.get("submissions") and not timing.get("timed_pairs_inside"))


def _unread(record: Record) -> str:
    events = _timing(record).get("timed_events", 0)
    return f"0 pairs of {events} timing events" if events and _is_unchecked(record) else ""


def _no_events(record: Record) -> str:
    if not _is_unchecked(record) or _timing(record).get("timed_events"):
        return ""
    return f"0 timing events, {record['submissions']} submissions"


def _work_at_end(record: Record) -> str:
    return "after the hold's end" if record.get("work_at_end") is True else ""


def _foreign(record: Record) -> str:
    seen = record.get("foreign_processes") or {}
    found = [*seen.get("at_start", ()), *seen.get("at_end", ())]
    names = {f"{p.get('name', '?')} ({p.get('pid', 0)})" for p in found}
    return ", ".join(sorted(names))


def _refused(record: Record) -> str:
    refused = record.get("oom_while_shared") or ()
    return f"{len(refused)} refused" if refused else ""


def _disagrees(timing: Mapping[str, Any], reported_s: float) -> str:
    """Whether a number is neither a pair's nor a launch's duration; there has to be a pair."""
    shortest_s = timing["shortest_pair_s"]
    mean_s = timing["timed_s"] / timing["timed_pairs_inside"]
    for launches in {1, max(1, int(timing.get("shortest_pair_launches", 1)))}:
        low, high = REPORTED_BELOW * shortest_s / launches, REPORTED_ABOVE * mean_s / launches
        if low <= reported_s <= high:
            return ""
    return (
        f"reported {reported_s * 1e3:.6g} ms; pairs took {shortest_s * 1e3:.6g} ms at least, "
        f"{mean_s * 1e3:.6g} ms in the mean"
    )


_LOOKS: Final[dict[str, Callable[[Record], str]]] = {
    "not_exclusive": _not_exclusive,
    "foreign_process": _foreign,
    "no_work_in_region": _no_work,
    "unread_pairs": _unread,
    "no_timing_events": _no_events,
    "empty_pair": _pairs("empty_pairs"),
    "uncovered_work": _pairs("uncovered_pairs"),
    "other_threads": _pairs("shared_pairs"),
    "disturbed": _pairs("disturbed_pairs"),
    "cold_start": _cold,
    "below_noise_floor": _short,
    "work_behind": _pairs("pairs_with_work_behind"),
    "mostly_idle": _idle,
    "work_at_end": _work_at_end,
    "out_of_memory": _refused,
}


# Reading and writing.


def read(path: str | Path) -> list[Record]:
    """The objects of a report. Raises UsageError, which says which line is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", "give what `--report` wrote") from None
    return [_object(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _object(path: str | Path, number: int, line: str) -> Record:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        found = error
    if not isinstance(found, dict):
        raise UsageError(
            f"{path}, line {number}, is no JSON object", "give what `krex run --report` wrote"
        )
    return found


def read_reported(word: str) -> dict[str, float]:
    """NAME=SECONDS, or a file with a JSON object of such. Raises UsageError."""
    name, equals, number = word.rpartition("=")
    hint = "say --reported NAME=SECONDS, or name a file with a JSON object {NAME: SECONDS}"
    try:
        if equals:
            return {name: float(number)}
        found = json.loads(Path(word).read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"--reported {word}: {error}", hint) from None


def render(report: AuditReport) -> Iterator[str]:
    """The report as lines of text, the worst findings first."""
    for severity in reversed(SEVERITIES):
        for finding in report.findings:
            if finding.severity == severity:
                yield from _lines(finding)
    counts = {s: sum(f.severity == s for f in report.findings) for s in reversed(SEVERITIES)}
    said = ", ".join(f"{n} {s}{'s' * (n != 1)}" for s, n in counts.items())
    yield f"{report.regions} region{'s' * (report.regions != 1)}: {said}"


def _lines(finding: Finding) -> Iterator[str]:
    where = finding.command or "all files"
    if finding.region_id is not UNSET:
        where = f"{finding.region_id} {finding.name}".rstrip()
    yield f"{finding.severity}: {where}: {finding.code}: {finding.detail}"
    yield f"    {finding.meaning}"
    yield f"    {finding.fix}"
