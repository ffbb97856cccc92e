# SPDX-License-Identifier: Apache-2.0
"""`make demo`: a benchmark alone, beside busy siblings, and beside the same ones under KREX.

Candidate B does a quarter more work than A. The ways of measuring take turns, so that a machine
that gets slower or faster meanwhile does so for all of them; "alone, again" is the control: what it
differs from "alone" is this machine's noise, not KREX's doing.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BENCH = [sys.executable, str(HERE / "bench_opencl.py")]
BUSY = [sys.executable, str(HERE / "busy_opencl.py")]
RUN = [sys.executable, "-m", "krex.cli", "run", "-q", "--"]
ROUNDS, SIBLINGS, REPEATS = 7, 3, 200
TOO_NOISY = 0.15
WORK = {"A": 1000, "B": 1250}
# name: (words before each command, whether siblings compute meanwhile)
WAYS: dict[str, tuple[list[str], bool]] = {
    "alone": ([], False),
    "alone, again": ([], False),
    "beside busy siblings": ([], True),
    "the same under KREX": (RUN, True),
}


def measure(how: list[str], candidate: str) -> float:
    """One measurement of a candidate, in milliseconds."""
    command = [*how, *BENCH, str(WORK[candidate]), str(REPEATS)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout)


def measure_both(how: list[str], siblings: bool) -> dict[str, float]:
    """Measure A and B, with siblings that compute from before the first to after the second."""
    busy = [
        subprocess.Popen([*how, *BUSY], stdout=subprocess.PIPE)
        for _ in range(SIBLINGS if siblings else 0)
    ]
    try:
        for child in busy:
            assert child.stdout
            if child.stdout.readline() != b"ready\n":
                sys.exit("a busy sibling did not start")
        measured = {candidate: measure(how, candidate) for candidate in WORK}
        if any(child.poll() is not None for child in busy):
            sys.exit("a busy sibling ended before the measurement did")
        return measured
    finally:
        for child in busy:
            child.terminate()
        for child in busy:
            child.communicate()


def show(found: dict[str, list[dict[str, float]]]) -> None:
    """Print the table."""
    alone = statistics.median(r["A"] for r in found["alone"])
    print(f"{'':24}{'duration of A':>16}{'inflation':>12}{'worst':>9}   B seen to be slower than A")
    for name, rounds in found.items():
        a = [r["A"] for r in rounds]
        right = sum(r["B"] > r["A"] for r in rounds)
        middle = statistics.median(a)
        print(
            f"{name:24}{middle:13.3f} ms{middle / alone:11.2f}x{max(a) / alone:8.2f}x"
            f"   {right} of {len(rounds)} times"
        )


def verdict(found: dict[str, list[dict[str, float]]]) -> str:
    """What the table says, unless the control says that nothing can be read from it."""
    alone, again, shared, protected = (
        statistics.median(r["A"] for r in rounds) for rounds in found.values()
    )
    noise = abs(again / alone - 1)
    if noise > TOO_NOISY:
        return (
            f"The two rows alone differ by {noise:.0%}: this machine is too busy with other things "
            "for the rest to mean much. Run it again when it is quiet."
        )
    return (
        f"Beside busy siblings A looks {shared / alone:.1f} times as slow as it is; under KREX "
        f"{protected / alone:.2f} times. Two measurements alone differ by {noise:.0%} here."
    )


def main() -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KREX_SOCKET"] = f"{folder}/control.sock"
        controller = subprocess.Popen([sys.executable, "-m", "krex.cli", "serve"])
        try:
            for number in range(ROUNDS):
                print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
                for name, (how, siblings) in WAYS.items():
                    found[name].append(measure_both(how, siblings))
        finally:
            controller.terminate()
            controller.wait(10)
    show(found)
    print(verdict(found))


if __name__ == "__main__":
    main()
