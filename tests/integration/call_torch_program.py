# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ways to time something, on a simulated GPU; its CPU build has no use for one itself.

call_torch_program.py timer | lock | processes | compile_workers | benchmarker
"""

import contextlib
import inspect
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import call_events
from call_harness import timed
from call_torch import benchmark
from torch._inductor.runtime import benchmarking
from torch.utils.benchmark import Timer

BRIEFLY = 0.01


def timer():
    """By the clock of the host; each method, with the number of calls that it timed."""
    it = Timer("timed()", globals={"timed": timed})
    found = [
        it.timeit(10),
        it.blocked_autorange(min_run_time=BRIEFLY),
        it.adaptive_autorange(threshold=1.0, min_run_time=BRIEFLY, max_run_time=1.0),
    ]
    calls = [len(one.raw_times) * one.number_per_run for one in found]
    return {"calls": calls, "signature": str(inspect.signature(Timer.timeit))}


def processes():
    """In this process, a spawned one, and the one that Inductor tunes in."""
    from torch._inductor.autotune_process import TuningProcess

    pids = [benchmark()]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pids.append(pool.submit(benchmark).result())
    tuning = TuningProcess(device=None)
    tuning.put(benchmark)
    pids.append(tuning.get())
    tuning.shutdown()
    return pids


def compile_workers():
    """In those that Inductor compiles in."""
    from torch._inductor.compile_worker.subproc_pool import SubprocKind, SubprocPool

    pids = []
    for kind in (SubprocKind.FORK, SubprocKind.SPAWN):
        workers = SubprocPool(1, kind=kind)
        pids.append(workers.submit(benchmark).result())
        workers.shutdown()
    return pids


def lock():
    """A program that sets a lock of its own gets what was there before, and its own is used."""
    entered = []

    @contextlib.contextmanager
    def own():
        entered.append(1)
        yield

    before = benchmarking.set_gpu_benchmark_lock_context(own)
    benchmark()
    after = benchmarking.set_gpu_benchmark_lock_context(before)
    benchmark()
    return {"entered": len(entered), "theirs": after is own}


class Driver:
    """As Triton has it of a GPU."""

    get_device_interface = staticmethod(lambda: call_events.Interface)
    get_empty_cache_for_benchmark = call_events.Buffer
    clear_cache = staticmethod(call_events.Buffer.zero_)


def benchmarker():
    """Inductor's own use of Triton's do_bench, under its lock."""
    import triton

    call_events.start()
    triton.runtime.driver.set_active(Driver())
    return benchmarking.TritonBenchmarker().benchmark_gpu(timed, warmup=2, rep=5)


if __name__ == "__main__":
    ways = {way.__name__: way for way in (timer, lock, processes, compile_workers, benchmarker)}
    print(json.dumps({name: ways[name]() for name in sys.argv[1:]}))
