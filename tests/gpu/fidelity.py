# SPDX-License-Identifier: Apache-2.0
"""Section e: is what a benchmark measures under KREX what it measures alone?

Kernels in three bands of duration are measured in four ways, which take turns: alone, alone again
(the control), beside busy siblings without KREX, and beside the same ones under it. A measurement
is what a harness prints, the median of its launches; its inflation is what it exceeds the median
measurement alone by.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from gpu.attempt import attempt
from gpu.calibrate import steps_for
from gpu.programs_of import program, python
from gpu.rows import Job
from gpu.stage import Stage, count_exclusive, reasons, stage

from krex.eval.statistics import percentile

_BANDS_MS = {"0.1 ms": 0.1, "1 ms": 1.0, "10 ms": 10.0}
_LAUNCHES = {"0.1 ms": 50, "1 ms": 15, "10 ms": 5}
_MEASUREMENTS, _TURNS = 12, 2
_SIBLINGS, _SIBLING_MS = 4, 1.0
_LIMIT_S = 115.0
ALONE, AGAIN, SHARED, PROTECTED = "alone", "alone, again", "beside 4 busy", "the same under KREX"

Output = dict[str, Any]  # of bench_bands.py


class Runs:
    """All that was measured, by way and band."""

    def __init__(self, job: Job, made: Stage) -> None:
        self._stage = made
        *bands, self._sibling = steps_for(*_BANDS_MS.values(), _SIBLING_MS)
        kinds = [f"{_LAUNCHES[n]}:{steps}" for n, steps in zip(_BANDS_MS, bands, strict=True)]
        self._bench = python(program("bench_bands.py"), job.device, str(_MEASUREMENTS), *kinds)
        self.medians: dict[str, list[list[float]]] = {}
        self.records: list[dict[str, Any]] = []
        self.sm_mhz: dict[str, list[float]] = {}

    def turn(self) -> None:
        """Measure once in each way."""
        ways: dict[str, Callable[[], Output]] = {
            ALONE: self._alone,
            AGAIN: self._alone,
            SHARED: self._shared,
            PROTECTED: self._protected,
        }
        for name, way in ways.items():
            found = way()
            kept = self.medians.setdefault(name, [[] for _ in _BANDS_MS])
            for band, medians in zip(kept, found["medians_s"], strict=True):
                band.extend(medians)
            self.sm_mhz.setdefault(name, []).extend(found["sm_mhz"])

    def _alone(self) -> Output:
        done = subprocess.run(
            self._bench, stdout=subprocess.PIPE, check=True, timeout=_LIMIT_S, text=True
        )
        found: Output = json.loads(done.stdout)
        return found

    def _shared(self) -> Output:
        with self._stage.busy(_SIBLINGS, _SIBLING_MS, self._sibling, protected=False):
            return self._alone()

    def _protected(self) -> Output:
        with self._stage.busy(_SIBLINGS, _SIBLING_MS, self._sibling):
            done = self._stage.run(self._bench, _LIMIT_S)
        if done.status:
            raise RuntimeError(f"the benchmark failed: {done.why()}")
        self.records += done.records
        found: Output = json.loads(done.stdout)
        return found


def main(job: Job) -> None:
    """A row for each band, one for the regions, one for the clocks."""
    attempt(job, "fidelity", lambda: _measure(job), _LIMIT_S)


def _measure(job: Job) -> None:
    with stage(job, slots=_SIBLINGS + 1) as made:
        runs = Runs(job, made)
        for _ in range(_TURNS):
            runs.turn()
    for number, name in enumerate(_BANDS_MS):
        _band(job, name, {way: medians[number] for way, medians in runs.medians.items()})
    exclusive = count_exclusive(runs.records)
    expected = _TURNS * _MEASUREMENTS * len(_BANDS_MS)
    why = reasons(runs.records)
    text = f"{exclusive} of {expected} exclusive" + (f" ({why})" if why else "")
    job.judge("regions", exclusive == expected, text)
    _clocks(job, runs.sm_mhz)


def _clocks(job: Job, sm_mhz: dict[str, list[float]]) -> None:
    if not all(sm_mhz.values()):
        job.not_run("clocks", "NVML does not answer: nobody knows what they were")
        return
    parts = [
        f"{way} {statistics.median(values):g} ({min(values):g} to {max(values):g})"
        for way, values in sm_mhz.items()
    ]
    text = f"SM MHz after the measurements: {', '.join(parts)}; as found, none was set"
    job.measured("clocks", text, sm_mhz=sm_mhz)


def _band(job: Job, name: str, medians: dict[str, list[float]]) -> None:
    solo = statistics.median(medians[ALONE])
    inflation = {
        way: percentile([value / solo - 1 for value in values], 95)
        for way, values in medians.items()
    }
    parts = ", ".join(f"{way} {value:+.2%}" for way, value in inflation.items())
    text = f"alone {solo * 1e3:.4f} ms; inflation at p95: {parts}"
    job.measured(name, text, solo_s=solo, inflation_p95=inflation, medians_s=medians)


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
