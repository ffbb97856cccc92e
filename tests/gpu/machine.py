# SPDX-License-Identifier: Apache-2.0
"""What there is here, and what isn't: clocks as found, packages, rights."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys

from gpu import clocks
from gpu.rows import Job

_PACKAGES = {
    "torch": "torch",
    "triton": "triton",
    "cupy": "cupy-cuda",  # and the version that it is for
    "numba": "numba-cuda",
    "cuda.bindings": "cuda-bindings",
}
# Of `krex doctor`: without these nothing works. All else a GPU machine may well lack.
_NEEDED = ("kernel", "libc", "shared-memory", "wipe-on-fork", "pidfd", "preload", "controller")


def main(job: Job) -> None:
    """A row for each."""
    job.measured("system", f"{platform.platform()}, Python {platform.python_version()}")
    _packages(job)
    _clocks(job)
    if os.geteuid() != 0:
        job.not_run("as root", "this is not root: what needs it is a row of its own")
    _doctor(job)


def _packages(job: Job) -> None:
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    for module, package in _PACKAGES.items():
        versions = [version for name, version in found.items() if name.startswith(package)]
        if versions:
            job.measured(module, versions[0])
        else:
            job.not_run(module, f"there is no package {package}")
    for program in ("nvcc", "cc"):
        if not shutil.which(program):
            job.not_run(program, f"there is no {program} on the PATH")


def _clocks(job: Job) -> None:
    found = clocks.read(job.device)
    if found is None:
        job.not_run("clocks", "NVML does not answer")
    else:
        job.measured("clocks", f"{clocks.describe(found)}; as found, none was set", **found)


def _doctor(job: Job) -> None:
    command = [sys.executable, "-m", "krex.cli", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=25, check=False)
    try:
        checks = json.loads(done.stdout)["checks"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines()
        job.failed("krex doctor", said[-1] if said else f"exit status {done.returncode}")
        return
    for check in checks:
        if check["status"] == "ok":
            continue
        if check["id"] in _NEEDED:
            job.judge(f"doctor: {check['id']}", check["status"] != "failed", check["detail"])
        else:
            job.not_run(f"doctor: {check['id']}", check["detail"])
    job.measured("krex doctor", f"{len(checks)} checks; those that are not ok are rows above")


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
