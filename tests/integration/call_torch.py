# SPDX-License-Identifier: Apache-2.0
"""What torch's processes are given to do: times two events as Inductor does, under its own lock."""

import os

from call_harness import timed
from torch._inductor.runtime.benchmarking import gpu_benchmark_lock


@gpu_benchmark_lock
def again():
    """Its benchmarkers call each other."""
    timed()


@gpu_benchmark_lock
def benchmark():
    again()
    return os.getpid()
