# SPDX-License-Identifier: Apache-2.0
"""The checks written in C, as `make check` builds and runs them, in the plain variant.

`make check` runs the same programs under the sanitizers and valgrind as well.
"""

import os
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).with_name("c")
NAMES = sorted(path.stem for path in SOURCES.glob("*.c"))
SKIPPED = 77


@pytest.fixture(scope="session")
def build(root):
    """Build one check by the Makefile's own rule; returns the program."""
    # Not the outer make's job server and flags, if `make test` runs this.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name}

    def build_one(name: str) -> Path:
        target = f"build/plain/unit/{name}"
        done = subprocess.run(
            ["make", "--silent", target],
            cwd=root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Path(root, target)

    return build_one


def run(program: Path) -> subprocess.CompletedProcess[str]:
    """Run a check to its end."""
    env = {**os.environ, "KREX_CHECK": "plain"}
    return subprocess.run(
        [program], env=env, capture_output=True, text=True, check=False, timeout=115
    )


def test_there_are_checks():
    assert {"litmus", "litmus_twin"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_c_check(build, name):
    # GIVEN a check that builds without a warning
    program = build(name)
    # WHEN it runs
    done = run(program)
    # THEN it passes; one that can't run here says why
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip() or "the program skipped itself")
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
