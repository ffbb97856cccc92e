# SPDX-License-Identifier: Apache-2.0
"""`make demo`: one benchmark alone, beside busy siblings, and beside the same siblings under KREX."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = [sys.executable, str(Path(__file__).with_name("bench_opencl.py"))]
RUN = [sys.executable, "-m", "krex.cli", "run", "-q"]
ROUNDS, SIBLINGS = 5, 3
WORK = {"A": 1000, "B": 1300}  # B does 1.3 times the work: it is the slower candidate


def measure(how: list[str], candidate: str) -> float:
    """One measurement of a candidate, in milliseconds."""
    command = [*how, *BENCH, str(WORK[candidate]), "100"]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def beside(how: list[str]) -> list[subprocess.Popen[bytes]]:
    """Start siblings that compute without a pause."""
    command = [*how, *BENCH, "1000", "1000000"]
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(SIBLINGS)]


def rounds(how: list[str], siblings: bool) -> dict[str, list[float]]:
    """Measure both candidates, in turn."""
    found: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(ROUNDS):
        for name, durations in found.items():
            busy = beside(how) if siblings else []
            try:
                durations.append(measure(how, name))
            finally:
                for child in busy:
                    child.terminate()
                for child in busy:
                    child.wait()
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
