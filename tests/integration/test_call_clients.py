# SPDX-License-Identifier: Apache-2.0
"""Real harnesses, unmodified, whose timing functions are known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.clients import packages_with, python_with, python_with_torch
from support.command_line import Krex

HERE = Path(__file__).parent
INDUCTOR = "torch._inductor.runtime.benchmarking"
SIM = ("--sim", "--require")
IMPORTS_S = 100  # five processes, each of which imports torch
pytestmark = pytest.mark.slow


@pytest.fixture
def sim(cli: Krex) -> Krex:
    cli.env["TRITON_CACHE_DIR"] = str(cli.folder / "triton")
    return cli


def run(sim: Krex, python: str, program: str, *words: str, options=()) -> dict[str, object]:
    command = ("run", *options, "--report", "r", "--", python, str(HERE / program), *words)
    process = sim.start(*command)
    out, err = process.communicate(timeout=IMPORTS_S)
    assert process.returncode == 0, err
    return json.loads(out)


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


def test_cupyx_repeats_and_warms_up_in_one_region(sim: Krex) -> None:
    # GIVEN a program that times a kernel by CuPy's benchmark
    python = python_with("cupy-cuda13x")
    found = run(sim, python, "call_cupy_program.py", options=SIM)
    # THEN the loop is the region, and all that it timed lay inside
    [record] = sim.records("r")
    assert (record["name"], record["marker"]) == ("cupyx.profiler._time._repeat", "call")
    assert record["exclusive"], record["reasons"]
    [times] = found["gpu_times"]
    timing = record["timing"]
    assert timing["timed_pairs_inside"] == timing["timed_pairs_total"] == len(times) == 10
    assert sum(times) == pytest.approx(timing["timed_s"], rel=0.01)


def test_tinygrads_search_times_each_candidate_in_a_region(sim: Krex) -> None:
    # GIVEN tinygrad's BEAM on CUDA, with the compiler for PTX that it comes with
    python = python_with("tinygrad")
    sim.env |= {"DEV": "CUDA:PTX", "BEAM": "1", "XDG_CACHE_HOME": str(sim.folder)}
    assert run(sim, python, "call_tinygrad_program.py", options=SIM)["device"] == "CUDA"
    # THEN each candidate that it times is a region
    records = sim.records("r")
    assert {r["name"] for r in records} == {"tinygrad.codegen.opt.search._time_program"}
    assert len(records) > 3 and all(r["exclusive"] for r in records)
    assert all(r["timing"]["timed_pairs_inside"] > 0 for r in records)


def test_kernel_tuner_measures_each_configuration_in_a_region(sim: Krex) -> None:
    # GIVEN Kernel Tuner on OpenCL, whose events have profiles
    python = python_with("kernel_tuner", "pyopencl")
    found = run(sim, python, "call_tuner_program.py", options=("--require",))
    # THEN its measurements are regions, with nothing timed elsewhere
    records = [r for r in sim.records("r") if r["schema"] == "krex.region"]
    assert len(records) >= len(found["ms"]) == 2
    name = "kernel_tuner.core.DeviceInterface.benchmark_default"
    assert {(r["marker"], r["name"], r["device"]) for r in records} == {("call", name, "cpu:0")}
    timings = [record["timing"] for record in records]
    assert all(timing["timed_pairs_inside"] > 1 for timing in timings)
    assert timings[-1]["timed_pairs_outside"] == 0


@pytest.fixture
def torch(sim: Krex) -> str:
    """The Python with PyTorch, and what its benchmarks time."""
    sim.env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), sim.env.get("PYTHONPATH")]))
    sim.env["TORCHINDUCTOR_CACHE_DIR"] = str(sim.folder / "inductor")
    return python_with_torch()


def test_torchs_timer_is_a_region_by_each_of_its_methods(sim: Krex, torch: str) -> None:
    # GIVEN torch.utils.benchmark, whose methods call each other and time by the host's clock
    found = run(sim, torch, "call_torch_program.py", "timer", "lock", options=SIM)
    methods = ("timeit", "blocked_autorange", "adaptive_autorange")
    *timers, inductors = [r for r in sim.records("r") if r["marker"] == "call"]
    # THEN the one that is called is the region, with all that it timed in it
    names = [f"torch.utils.benchmark.utils.timer.Timer.{method}" for method in methods]
    assert [(r["name"], r["exclusive"]) for r in timers] == [(name, True) for name in names]
    inside = [record["timing"]["timed_pairs_inside"] for record in timers]
    assert all(n >= calls for n, calls in zip(inside, found["timer"]["calls"], strict=True))
    assert found["timer"]["signature"].startswith("(self, number: int = 1000000)")
    # AND Inductor's lock is ours until the program sets its own
    assert found["lock"] == {"entered": 2, "theirs": True}
    assert inductors["name"] == INDUCTOR


@pytest.mark.parametrize("which", ["processes", "compile_workers"])
def test_inductors_lock_is_a_region_in_every_process(sim: Krex, torch: str, which: str) -> None:
    # GIVEN the lock that Inductor enters around GPU benchmarks, in all kinds of its processes
    pids = run(sim, torch, "call_torch_program.py", which, options=SIM)[which]
    # THEN each has one region by it, however deep it is entered
    records = sim.records("r")
    assert [(r["name"], r["exclusive"]) for r in records] == [(INDUCTOR, True)] * len(pids)
    assert [r["timing"]["timed_pairs_inside"] for r in records] == [1] * len(pids)
    assert len({r["pid"] for r in records}) == len(set(pids)) > 1


def test_inductors_benchmarker_and_do_bench_are_one_region(sim: Krex, torch: str) -> None:
    # GIVEN PyTorch with Triton beside it, whose do_bench Inductor calls under its lock
    sim.env["PYTHONPATH"] += os.pathsep + packages_with("triton")
    found = run(sim, torch, "call_torch_program.py", "benchmarker", options=SIM)
    # THEN all of it is the region of who was called first, with each pair that do_bench timed
    [record] = sim.records("r")
    assert record["name"] == f"{INDUCTOR}.TritonBenchmarker.benchmark_gpu"
    assert record["exclusive"] and found["benchmarker"] > 0
    timing = record["timing"]
    assert timing["timed_pairs_inside"] == timing["timed_pairs_total"] > 5
