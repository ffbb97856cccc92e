# SPDX-License-Identifier: Apache-2.0
"""Real harnesses, unmodified, whose timing functions are known: Triton's, PyTorch's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.clients import python_with
from support.command_line import Krex

HERE = Path(__file__).parent
TORCH = HERE.parents[1] / ".venv-torch" / "bin" / "python"
SIM = ("--sim", "--require")
pytestmark = pytest.mark.slow


@pytest.fixture
def sim(cli: Krex) -> Krex:
    cli.env["TRITON_CACHE_DIR"] = str(cli.folder / "triton")
    return cli


def run(sim: Krex, python: str, program: str, *words: str, options=()) -> dict[str, object]:
    done = sim("run", *options, "--report", "r", "--", python, str(HERE / program), *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_do_bench_is_one_region_without_a_word_from_the_user(sim: Krex) -> None:
    # GIVEN a program that times a kernel by Triton's do_bench
    python = python_with("triton")
    # WHEN it runs with no mark and no KREX_REGION
    found = run(sim, python, "call_triton_program.py", "do_bench", options=SIM)
    # THEN do_bench was the region, and had the device alone
    [record] = sim.records("r")
    assert (record["name"], record["marker"]) == ("triton.testing.do_bench", "call")
    assert record["exclusive"], record["reasons"]
    # AND all that it timed lay inside
    assert found["ms"] > 0
    timing = record["timing"]
    assert timing["timed_pairs_inside"] == timing["timed_pairs_total"] > 1


def test_each_configuration_of_the_autotuner_is_a_region(sim: Krex) -> None:
    python = python_with("triton")
    found = run(sim, python, "call_triton_program.py", "autotune", options=SIM)
    # The compile of each is in it, and holds no device.
    assert found["configs"] == 2
    names = [record["name"] for record in sim.records("r")]
    assert names == ["triton.runtime.autotuner.Autotuner._bench"] * 2


def test_torch_benchmarks_enter_the_mark_by_methods_and_by_the_official_hook(sim: Krex) -> None:
    # GIVEN torch's CPU build, whose benchmarks use no device
    if not TORCH.exists():
        pytest.skip("not installed: torch (make torch)")
    # WHEN its timer and the lock around GPU benchmarks are used, in the process and its children
    found = run(sim, str(TORCH), "call_torch_program.py")
    # THEN the timer's methods are marked, and the hook is set in each process, once
    assert found["timer"] == ["timeit", "blocked_autorange", "adaptive_autorange"]
    assert found["contexts"] == ["torch._inductor.runtime.benchmarking"] * 3
    # AND nothing that torch looks at has changed
    assert found["signature"].startswith("(self, number: int = 1000000)")
    assert found["theirs"]
