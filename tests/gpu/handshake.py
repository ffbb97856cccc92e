# SPDX-License-Identifier: Apache-2.0
"""Section d: how long a region waits for its grant, beside siblings that keep the device busy."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from gpu.attempt import attempt
from gpu.calibrate import steps_for
from gpu.programs_of import program, python
from gpu.rows import Job
from gpu.stage import count_exclusive, reasons, stage

from krex.eval.statistics import percentile

_SIBLINGS = (0, 1, 8)
_REGIONS = 60
_KERNEL_MS = 0.1
_LIMIT_S = 40.0


def main(job: Job) -> None:
    """A row for each number of siblings."""
    (steps,) = steps_for(_KERNEL_MS)
    for count in _SIBLINGS:
        name = f"beside {count} busy"
        attempt(job, name, partial(_measure, job, name, count, steps), _LIMIT_S)


def _measure(job: Job, name: str, count: int, steps: int) -> None:
    with stage(job, slots=count + 1) as made, made.busy(count, _KERNEL_MS, steps):
        command = python(program("regions.py"), str(_REGIONS), str(steps))
        done = made.run(command, _LIMIT_S)
    if done.status:
        raise RuntimeError(f"the holder failed: {done.why()}")
    granted = [record for record in done.records if count_exclusive([record])]
    text = f"{len(granted)} of {_REGIONS} exclusive"
    if why := reasons(done.records):
        text += f" ({why})"
    values: dict[str, Any] = {"siblings": count, "exclusive": len(granted)}
    if granted:
        values |= _times(granted)
        text += "; grant {grant_s_p50:.2f} / {grant_s_p99:.2f} ms, of it {drain_s_p50:.2f} drain; "
        text += "release {release_s_p50:.2f} / {release_s_p99:.2f} ms (p50 / p99)"
        text = text.format(**{key: value * 1e3 for key, value in values.items()})
    job.judge(name, len(granted) == _REGIONS, text, **values)


def _times(granted: list[dict[str, Any]]) -> dict[str, float]:
    waits = [record["wait_s"] for record in granted]
    releases = [record.get("release_s", 0.0) for record in granted]
    drains = [record["handshake"].get("drain_s", 0.0) for record in granted]
    return {
        "grant_s_p50": percentile(waits, 50),
        "grant_s_p99": percentile(waits, 99),
        "drain_s_p50": percentile(drains, 50),
        "release_s_p50": percentile(releases, 50),
        "release_s_p99": percentile(releases, 99),
    }


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
