# SPDX-License-Identifier: Apache-2.0
"""`make demo`: one benchmark alone, beside busy siblings, and beside the same siblings under KREX."""  # noqa: E501

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = [sys.executable, str(Path(__file__).with_name("bench_opencl.py"))]
BUSY = [sys.executable, str(Path(__file__).with_name("busy_opencl.py"))]
RUN = [sys.executable, "-m", "krex.cli", "run", "-q"]
ROUNDS, SIBLINGS = 5, 3
WORK = {"A": 1000, "B": 1300}  # B does 1.3 times the work: it is the slower candidate


def measure(how: list[str], candidate: str) -> float:
    """One measurement of a candidate, in milliseconds."""
    command = [*how, *BENCH, str(WORK[candidate]), "100"]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def beside(how: list[str]) -> list[subprocess.Popen[bytes]]:
    """Start siblings that compute without a pause, and wait until they do."""
    children = [subprocess.Popen([*how, *BUSY], stdout=subprocess.PIPE) for _ in range(SIBLINGS)]
    for child in children:
        assert child.stdout
        child.stdout.readline()
    return children


def rounds(how: list[str], siblings: bool) -> dict[str, list[float]]:
    """Measure both candidates, in turn."""
    busy = beside(how) if siblings else []
    try:
        return _measure_in_turn(how)
    finally:
        for child in busy:
            child.terminate()
        for child in busy:
            child.communicate()


def _measure_in_turn(how: list[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(ROUNDS):
        for name, durations in found.items():
            durations.append(measure(how, name))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KREX_SOCKET"] = f"{folder}/control.sock"
        serve = [sys.executable, "-m", "krex.cli", "serve"]
        controller = subprocess.Popen(serve)
        try:
            table = {
                "alone": rounds([], False),
                "alone, again": rounds([], False),
                "beside busy siblings": rounds([], True),
                "beside busy siblings, KREX": rounds([*RUN, "--"], True),
            }
        finally:
            controller.terminate()
            controller.wait()
    alone = statistics.median(table["alone"]["A"])
    print(f"{'candidate A':28}{'median':>10}{'against alone':>16}   B slower than A?")
    for name, found in table.items():
        a = statistics.median(found["A"])
        order = sum(x < y for x, y in zip(found["A"], found["B"], strict=True))
        print(f"{name:28}{a:7.3f} ms{a / alone:15.2f}x   {order} of {ROUNDS} times")


if __name__ == "__main__":
    main()
