# SPDX-License-Identifier: Apache-2.0
"""A wheel made from the sources alone carries everything and works somewhere else."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Anything built before must not find its way in.
NOT_SOURCES = shutil.ignore_patterns(
    ".*", "build", "dist", "*.egg-info", "__pycache__", "lib", "include", "_native*"
)


def run(*command, **kwargs):
    """Run a command and return what it printed; show everything if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, **kwargs
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    sources = tmp_path_factory.mktemp("sources") / "krex"
    shutil.copytree(root, sources, ignore=NOT_SOURCES)
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", out, ".", cwd=sources)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel and its dependencies; a path with a space in it."""
    venv = tmp_path_factory.mktemp("elsewhere") / "an environment"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    return venv


@pytest.fixture
def environment(tmp_path):
    """An environment of its own: no source tree on the path, and its own controller."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "KREX_SOCKET": str(tmp_path / "krex" / "control.sock")}


def test_the_wheel_serves_every_python_of_one_platform(wheel):
    assert re.fullmatch(r"krex_gpu-[\w.]+-cp310-abi3-\w*linux\w*\.whl", wheel.name)


def test_the_wheel_carries_what_was_built_and_what_is_data(wheel, root):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"krex/lib/libkrex.so", "krex/include/krex.h", "krex/_native.abi3.so"} <= names
    assert {"krex/lib/sim/krex-sim-device", "krex/lib/sim/libcuda.so.1"} <= names
    hip = ("libamdhip64.so", *(f"libamdhip64.so.{release}" for release in (5, 6, 7)))
    assert {f"krex/lib/sim/{name}" for name in hip} <= names
    for pattern in (
        "krex/schemas/*.json",
        "krex/sim/*.toml",
        "krex/presets/*.toml",
        "krex/marker/bridge/**/*.py",
        "krex/**/*.py",
    ):
        expected = {str(path.relative_to(root)) for path in root.glob(pattern)}
        assert expected, f"nothing matches {pattern}"
        assert expected <= names


def test_the_wheel_carries_nothing_else(wheel):
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not re.fullmatch(r"krex|krex_gpu-.*\.dist-info", top)} == set()


def test_an_installed_wheel_says_where_its_files_are(installed, environment, tmp_path):
    krex = installed / "bin" / "krex"
    library = Path(run(krex, "lib-path", cwd=tmp_path, env=environment).rstrip("\n"))
    header = Path(run(krex, "lib-path", "--include", cwd=tmp_path, env=environment).rstrip("\n"))
    assert installed in library.parents
    assert library.name == "libkrex.so"
    assert (header / "krex.h").exists()


def test_an_installed_wheel_runs_a_command(installed, environment, tmp_path):
    krex = installed / "bin" / "krex"
    run(krex, "run", "--", "true", cwd=tmp_path, env=environment)
    done = subprocess.run(
        [krex, "run", "--", "sh", "-c", "echo out; exit 7"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("out\n", 7), done.stderr


def test_an_installed_wheel_has_simulated_devices(installed, environment, tmp_path):
    package = Path(run(installed / "bin" / "krex", "lib-path", env=environment).rstrip("\n")).parent
    device = package / "sim" / "krex-sim-device"
    run(device, "--socket", tmp_path / "sim.sock", "--linger", "0", cwd=tmp_path, env=environment)
    model = run(installed / "bin" / "krex", "sim", "model", cwd=tmp_path, env=environment)
    assert "[device]" in model
