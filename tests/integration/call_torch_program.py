# SPDX-License-Identifier: Apache-2.0
"""What of torch is marked, in this process, a spawned one, and one as Inductor starts them."""

import contextlib
import inspect
import json
import multiprocessing
import subprocess
import sys

import torch
from torch._inductor.runtime import benchmarking
from torch._inductor.utils import python_subprocess_env
from torch.utils.benchmark import Timer

CHILD = (
    "import torch; from torch._inductor.runtime import benchmarking as b;"
    "print(b._gpu_benchmark_lock_context().name)"
)


def context():
    with benchmarking.maybe_gpu_benchmark_lock(), benchmarking.maybe_gpu_benchmark_lock():
        return benchmarking._gpu_benchmark_lock_context().name


def marked(function):
    return any(hasattr(constant, "marks_functions") for constant in function.__code__.co_consts)


def main():
    timer = Timer("x + 1", globals={"x": torch.ones(4)})
    timer.timeit(10)
    methods = ["timeit", "blocked_autorange", "adaptive_autorange"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.apply(context)
    command = [sys.executable, "-c", CHILD]
    started = subprocess.run(
        command, env=python_subprocess_env(), capture_output=True, text=True, check=True
    )
    found = {
        "timer": [name for name in methods if marked(getattr(Timer, name))],
        "contexts": [context(), spawned, started.stdout.strip()],
        "signature": str(inspect.signature(Timer.timeit)),
    }
    # A harness that sets a lock of its own gets what was there before, and its own is used.
    before = benchmarking.set_gpu_benchmark_lock_context(contextlib.nullcontext)
    found["theirs"] = before is not None and benchmarking.set_gpu_benchmark_lock_context(
        before
    ) is (contextlib.nullcontext)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
