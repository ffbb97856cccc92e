# SPDX-License-Identifier: Apache-2.0
"""The log of the simulated devices: what was on them, and when. docs/sim.md has its form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from krex.errors import UsageError

COLUMNS = (
    "device", "context", "pid", "kind", "stream", "seq", "arrival_ns", "start_ns", "end_ns",
    "status", "name",
)  # fmt: skip
# The kinds that are work of a program's on the device, which a region's gate has to keep off.
WORK = frozenset({"run", "copy_to", "copy_from", "copy_within", "fill"})
_COVERED = "# covered "


class Interval(NamedTuple):
    """What was on a device from `start_ns` to `end_ns`, submitted at `arrival_ns` by `pid`."""

    device: str
    context: int
    pid: int
    kind: str
    stream: int
    seq: int
    arrival_ns: int
    start_ns: int
    end_ns: int
    status: str
    name: str


class Log(NamedTuple):
    """A log. All that ended before `covered_ns` is in it; None: nobody vouches for that."""

    intervals: list[Interval]
    covered_ns: int | None


class LogError(UsageError):
    """A file that is no such log."""

    def __init__(self, path: str | Path, why: str) -> None:
        super().__init__(
            f"{path} is no log of simulated devices: {why}",
            "give the file that `krex run --sim-log` or `krex-sim-device --log` wrote",
        )


def read(path: str | Path) -> Log:
    """Read a whole log. Raises LogError, which says what is wrong with which line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return _parse(file)
    except OSError as error:
        raise LogError(path, str(error.strerror)) from None
    except ValueError as error:
        raise LogError(path, str(error)) from None


def _parse(lines: Iterator[str]) -> Log:
    if next(lines, "").rstrip("\n").split("\t") != list(COLUMNS):
        raise ValueError("its first line does not name the columns")
    intervals = []
    covered = None
    for number, line in enumerate(lines, 2):
        if line.startswith(_COVERED):
            covered = int(line[len(_COVERED) :])
        elif not line.startswith("#"):
            intervals.append(_interval(line, number))
    return Log(intervals, covered)


def _interval(line: str, number: int) -> Interval:
    # A line that was cut short, as by a full disk, could pass for another one.
    words = line.removesuffix("\n").split("\t")
    try:
        if len(words) != len(COLUMNS) or not line.endswith("\n"):
            raise ValueError
        device, context, pid, kind, *numbers, status, name = words
        return Interval(device, int(context), int(pid), kind, *map(int, numbers), status, name)  # type: ignore[call-arg,arg-type]
    except ValueError:
        raise ValueError(f"line {number} is not whole: {line.strip()!r}") from None
