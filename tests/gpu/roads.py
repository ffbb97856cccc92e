# SPDX-License-Identifier: Apache-2.0
"""Section b: each road to the driver, by a program that takes it, under `krex run`.

A program checks its own result, and works inside a region. Its record has to show submissions: then
the road passes the gate. And the region has to be exclusive: nothing else runs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gpu.attempt import NotRun, attempt
from gpu.programs_of import ROOT, program, python
from gpu.road_capture import sibling_captures
from gpu.rows import Job
from gpu.stage import Done, Stage, reasons, stage

_LIMIT_S = 60.0
_PYTHON = {
    "ctypes": program("road_ctypes.py"),
    "cuda-python": program("road_cuda_python.py"),
    "PyTorch": program("road_torch.py"),
    "PyTorch, CUDA graph": program("road_torch_graph.py"),
    "Triton": program("road_triton.py"),
    "CuPy": program("road_cupy.py"),
    "numba-cuda": program("road_numba.py"),
}


def main(job: Job) -> None:
    """A row for each road."""
    with stage(job, slots=4) as made:
        roads: dict[str, Callable[[], Sequence[str]]] = {
            name: partial(python, path) for name, path in _PYTHON.items()
        }
        for linkage in ("shared", "static"):
            roads[f"nvcc, {linkage} cudart"] = partial(_compile, job, made.folder, linkage)
        for name, command in roads.items():
            attempt(job, name, partial(_take, job, made, name, command), _LIMIT_S)
        attempt(job, "a capture open beside it", lambda: sibling_captures(job, made), _LIMIT_S)


def _take(job: Job, made: Stage, name: str, command: Callable[[], Sequence[str]]) -> None:
    text, right = judge(made.run(command(), _LIMIT_S))
    job.judge(name, right, text)


def judge(done: Done) -> tuple[str, bool]:
    """What to say of a command with regions, and whether it is as it should be."""
    if done.status:
        return f"the program failed: {done.why()}", False
    if not done.records:
        return "it has no record: the region was not seen", False
    submissions = sum(record.get("submissions", 0) for record in done.records)
    text = f"result right, {submissions} submissions in {len(done.records)} region(s)"
    if not submissions:
        return f"{text}: its work passes the gate by", False
    shared = [record for record in done.records if not record["exclusive"]]
    if shared:
        return f"{text}, {len(shared)} not exclusive: {reasons(shared)}", False
    return f"{text}, exclusive", True


def _compile(job: Job, folder: Path, linkage: str) -> list[str]:
    if job.simulated:
        raise NotRun("the vendor's libcudart works with the vendor's driver only")
    if not shutil.which("nvcc"):
        raise NotRun("there is no nvcc on the PATH")
    made = folder / f"road-{linkage}"
    words = ["nvcc", f"-cudart={linkage}", "-arch=native", f"-I{ROOT / 'shim'}"]
    command = [*words, "-o", str(made), program("road_runtime.cu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"nvcc failed: {done.stderr.strip()[-300:]}")
    return [str(made)]


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
