# SPDX-License-Identifier: Apache-2.0
"""`make gpu-check`: KREX on a real NVIDIA device, in minutes; docs/gpu-check.md explains the rows.

    python tests/gpu/check.py [--wheels DIR] [--only a,c] [--budget SECONDS] [--out FILE]
    python tests/gpu/check.py --table FILE

Needs the standard library, a driver, and KREX with what it imports: those of this interpreter, or
the wheels in a folder. Never changes a setting of the device. The exit status is 0, 1 if a check
failed, 2 for a command line that makes no sense, 77 where there is no device.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[0:0] = [] if str(HERE.parent) in sys.path else [str(HERE.parent)]

from gpu import probe, site_folder, table  # noqa: E402
from gpu.rows import Job, last_run  # noqa: E402
from gpu.runner import Section, run_all  # noqa: E402

BUDGET_S = 480.0
_OUT = ROOT / "build" / "gpu-check.jsonl"
_EXIT_USAGE = 2


def _module(letter: str, title: str, name: str, limit_s: float) -> Section:
    return Section(letter, title, [sys.executable, "-m", f"gpu.{name}"], limit_s)


# In order of value: what is cut off by the budget is what matters least.
MACHINE = _module("-", "the machine", "machine", 30)
SECTIONS = (
    _module("a", "questions to the driver", "questions", 75),
    _module("b", "roads", "roads", 150),
    _module("c", "overhead", "overhead", 40),
    _module("d", "handshake", "handshake", 60),
    _module("e", "fidelity", "fidelity", 120),
    _module("f", "throughput", "throughput", 150),
)


def main(
    argv: Sequence[str] | None = None,
    sections: Sequence[Section] = SECTIONS,
    machine: Section | None = MACHINE,
    find: Callable[[Mapping[str, str], str], probe.Device] = probe.find,
) -> int:
    """Check, and print the table; returns the exit status."""
    options = _parse(argv, [section.letter for section in sections])
    if options.table:
        return _show(options.table)
    chosen = [section for section in sections if section.letter in options.only]
    with _scratch() as scratch:
        environment = _environment(site_folder.unpack(options.wheels, Path(scratch)))
        try:
            device = find(environment, scratch)
            if device.simulated and not options.allow_simulated:
                raise probe.NoDevice("libcuda.so.1 is KREX's simulated one (--allow-simulated)")
        except probe.NoDevice as why:
            print(f"gpu-check: no GPU here, nothing was checked: {why}")
            return probe.EXIT_NONE
        if lacking := site_folder.lacking(environment, scratch):
            print(f"gpu-check: {lacking}", file=sys.stderr)
            return _EXIT_USAGE
        job = _new_job(options.out, device)
        run_all(
            [machine, *chosen] if machine else chosen, job, options.budget, environment, scratch
        )
    return _show(options.out)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A working directory for all: `python -m` looks there first, so it may hold no other KREX."""
    return tempfile.TemporaryDirectory(prefix="krex-gpu-")


def _parse(argv: Sequence[str] | None, letters: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-check", description="Check KREX on a real device.")
    parser.add_argument("--only", default=",".join(letters), help="sections, such as a,c")
    parser.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS")
    parser.add_argument("--out", default=str(_OUT), metavar="FILE", help="rows are appended to it")
    parser.add_argument("--table", metavar="FILE", help="print the table of an earlier run's rows")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="use these, and install nothing")
    parser.add_argument("--allow-simulated", action="store_true", help="for work on the checks")
    options = parser.parse_args(argv)
    options.only = options.only.split(",")
    options.out = os.path.abspath(options.out)  # noqa: PTH100
    if unknown := set(options.only) - set(letters):
        parser.error(
            f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(letters)}"
        )
    if options.wheels and not list(options.wheels.glob("*.whl")):
        parser.error(f"{options.wheels} has no wheels: run make gpu-check-bundle where pip works")
    return options


def _environment(site: Path | None) -> dict[str, str]:
    """For every process of the check: KREX and its packages, and nothing of an outer KREX."""
    drop = ("KREX_COMMAND", "KREX_REGION", "KREX_REPORT", "KREX_DISABLE", "LD_PRELOAD")
    environment = {name: text for name, text in os.environ.items() if name not in drop}
    krex = [str(site)] if site else [str(ROOT)]
    search = [*krex, str(HERE.parent), *environment.get("PYTHONPATH", "").split(":")]
    environment["PYTHONPATH"] = ":".join(entry for entry in search if entry)
    return environment


def _new_job(out: str, device: probe.Device) -> Job:
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) + f"-{os.getpid()}"
    job = Job(out, run, "-", 0.0, device.key, device.simulated)
    api = f"{device.driver_version // 1000}.{device.driver_version % 1000 // 10}"
    text = f"{device.name}, {device.key}, one of {device.count}; the driver's API is {api}"
    job.measured("device", text, name=device.name, driver_version=device.driver_version)
    return job


def _show(path: str) -> int:
    try:
        rows = last_run(path)
    except (OSError, ValueError) as error:
        print(f"gpu-check: no rows to show: {error}", file=sys.stderr)
        return _EXIT_USAGE
    print(table.render(rows))
    return 1 if table.any_failed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
