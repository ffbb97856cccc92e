# SPDX-License-Identifier: Apache-2.0
"""The model of the simulated devices: what a file may say, and what their process is told."""

import subprocess

import pytest
from support.sim_device import krex_command

from krex.errors import EXIT_USAGE
from krex.sim import model


def written(tmp_path, text):
    path = tmp_path / "model.toml"
    path.write_text(text)
    return path


def test_the_file_has_the_defaults_of_the_code():
    # tests/unit/c/sim_model.c compares the same file with the defaults of the device process.
    assert model.read() == model.Model(rules=[model.Rule(pattern="*")])


def test_a_file_needs_only_what_differs(tmp_path):
    text = '[sharing]\nmode = "concurrent"\n[[rules]]\npattern = "gemm*"\nfixed_ns = 7\n'
    found = model.read(written(tmp_path, text))
    assert found.device == model.Device()
    assert found.sharing == model.Sharing(mode="concurrent")
    lines = model.flatten(found).splitlines()
    assert "sharing.mode concurrent" in lines
    assert lines[-1] == "rule 7 2000 20000 0 0 none gemm*"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[device]\nmemory = 5\n", "memory"),
        ("[device]\nmemory_bytes = 0\n", "memory_bytes"),
        ("[sharing]\nslice_ns = 1.5\n", "slice_ns"),
        ('[sharing]\nmode = "fair"\n', "mode"),
        ("[[rules]]\nfixed_ns = 5\n", "pattern"),
        ('[[rules]]\npattern = "a"\nfault = "explode"\n', "fault"),
        ('[[rules]]\npattern = "a\\nb"\n', "pattern"),
        (f'[device]\nname = "{"x" * 96}"\n', "name"),
        ("[devices]\n", "devices"),
        ("not toml", "line 1"),
    ],
)
def test_a_wrong_file_is_refused_by_what_is_wrong_in_it(tmp_path, text, named):
    with pytest.raises(model.ModelError, match=named):
        model.read(written(tmp_path, text))


def test_no_file_is_refused(tmp_path):
    with pytest.raises(model.ModelError, match="No such file"):
        model.read(tmp_path / "none")


def test_the_device_process_reads_what_is_written_flat(tmp_path, root):
    device = root / "krex" / "lib" / "sim" / "krex-sim-device"
    if not device.exists():
        pytest.skip("not built: run `make build`")
    flat = tmp_path / "flat"
    flat.write_text(model.flatten(model.read()))
    words = [device, "--socket", tmp_path / "s", "--linger", "0", "--model", flat]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_prints_a_model_to_start_from(tmp_path):
    done = krex_command("sim", "model")
    assert (done.returncode, done.stderr) == (0, "")
    assert model.read(written(tmp_path, done.stdout)) == model.read()


def test_the_command_checks_a_model(tmp_path):
    done = krex_command("sim", "model", str(written(tmp_path, "[device]\nmemory = 5\n")))
    assert done.returncode == EXIT_USAGE
    assert "unknown field `memory`" in done.stderr
