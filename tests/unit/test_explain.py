# SPDX-License-Identifier: Apache-2.0
"""What `krex explain` finds in a command without running it."""

import json
import sys

import pytest
from click.testing import CliRunner

from krex.cli.explain import command
from krex.errors import CommandNotFoundError, KrexError, UsageError
from krex.launch import interpreter
from krex.presets import table
from krex.presets.explain import explain

BY_EVENTS = "a region goes from the first event that is recorded for timing"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(*words, region="auto"):
    return explain([sys.executable, *words], region, table.load())


def test_imports_are_found_in_the_program_and_beside_it(folder):
    # GIVEN a program that uses a known harness by way of a module of its own
    (folder / "bench.py").write_text("import helper\nimport never.heard_of\nraise SystemExit(3)\n")
    (folder / "helper.py").write_text("def f():\n    from kernelbench import timing\n")
    # WHEN it is explained
    found = of("bench.py")
    # THEN the harness is recognised where it is imported, and nothing was run
    [harness] = found.harnesses
    assert (harness.name, harness.because) == ("kernelbench", "helper.py:2 names kernelbench")
    assert "kernelbench.timing.time_execution_with_cuda_event" in harness.marked
    assert found.verdict[0] == "Functions of KernelBench are regions."


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch\nf = torch.compile(g)\n", ["inductor"]),
        ("import triton\n", ["triton"]),
        ("from torch.utils import benchmark\n", ["torch-benchmark"]),
        ("import tritonish, torch\n", []),
        ("from . import triton\n", []),
        ("this is no Python\n", []),
    ],
)
def test_names_are_recognised_whole(folder, source, names):
    (folder / "bench.py").write_text(source)
    found = of("bench.py")
    assert [harness.name for harness in found.harnesses] == names
    assert any(BY_EVENTS in text for text in found.verdict)  # whatever else it times


def test_a_script_that_is_not_there_is_said_as_a_program_would_be(folder):
    with pytest.raises(CommandNotFoundError, match=r"nope\.py does not exist"):
        of("nope.py")


def test_a_module_is_explained_as_a_program(folder):
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__main__.py").write_text("import helion\n")
    assert [h.name for h in of("-m", "pkg").harnesses] == ["helion"]
    assert [h.because for h in of("-m", "aiter.x").harnesses] == ["the command line names aiter.x"]


def test_programs_are_recognised_by_name_wherever_they_stand(folder):
    found = explain(["env", "/opt/rocm/bin/hipblaslt-bench", "-m", "1"], "", table.load())
    [harness] = found.harnesses
    assert harness.because == "the command names /opt/rocm/bin/hipblaslt-bench"
    assert harness.advice == "KREX_REGION=whole" and not harness.marked
    assert not found.python


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("none", "No regions"),
        ("whole", "The command is one region"),
        ("call:a.b,c.d", "Calls of a.b, c.d are regions."),
        ("nvtx:x", "NVTX ranges x are regions."),
        ("events", "from the first event that is recorded"),
    ],
)
def test_what_krex_region_says_decides(folder, region, said):
    (folder / "bench.py").write_text("import triton\n")
    found = of("bench.py", region=region)
    assert said in " ".join(found.verdict)
    assert not any(harness.marked for harness in found.harnesses)


def test_marks_of_its_own_go_first(folder):
    (folder / "bench.py").write_text("import krex, triton\n")
    found = of("bench.py")
    assert found.explicit == ["bench.py:1"]
    assert found.verdict[0].startswith("It imports krex (bench.py:1): its own marks are regions")
    assert not any(BY_EVENTS in text for text in found.verdict)


def test_what_hides_an_interpreter_from_us_is_said(folder):
    (folder / "bench.py").write_text("import triton\n")
    found = of("-I", "bench.py")
    assert found.obstacles[0].startswith("python -I ignores PYTHONPATH: no function is marked")
    assert not found.harnesses[0].marked
    assert not any(text.startswith("Functions") for text in found.verdict)


@pytest.mark.parametrize(
    ("words", "blind", "script", "module"),
    [
        (["x.py", "-I"], None, "x.py", None),
        (["-I", "x.py"], "I", "x.py", None),
        (["-Im", "pkg"], "I", None, "pkg"),
        (["-m", "pkg", "-S"], None, None, "pkg"),
        (["-mpkg", "-S"], None, None, "pkg"),
        (["-W", "-I", "-E", "x.py"], "E", "x.py", None),
        (["-WI", "-X", "S", "x.py"], None, "x.py", None),
        (["-uS", "x.py"], "S", "x.py", None),
        (["-c", "pass", "-I"], None, None, None),
        (["--check-hash-based-pycs", "always", "-I", "-"], "I", None, None),
        ([], None, None, None),
    ],
)
def test_options_of_python_are_read_as_python_reads_them(words, blind, script, module):
    python = interpreter.of("/usr/bin/python3.11", ["python3.11", *words])
    assert python is not None
    assert (python.script, python.module) == (script, module)
    assert (python.blind or "python -None")[8 : 8 + len(blind or "None")] == (blind or "None")


@pytest.mark.parametrize(
    ("line", "blind"),
    [
        ("#!/usr/bin/python3 -I", True),
        ("#!/usr/bin/env -S python3 -E", True),
        ("#!/usr/bin/env python", False),
    ],
)
def test_the_first_line_of_a_script_counts(tmp_path, line, blind):
    script = tmp_path / "tool"
    script.write_text(f"{line}\nimport triton\n")
    python = interpreter.of(str(script), ["tool", "-S"])
    assert python is not None and python.script == str(script)
    assert (python.blind is not None) == blind


@pytest.mark.parametrize("name", ["pythonic", "bash", "python3-config", "typhon"])
def test_what_is_no_python_is_none(name):
    assert interpreter.of(f"/nowhere/{name}", [name]) is None


# ---------------------------------------------------------------- the command line


def invoke(*words, **env):
    return CliRunner().invoke(command, list(words), env=env)


def test_it_prints_json_and_text(folder):
    (folder / "bench.py").write_text("import triton\n")
    said = json.loads(invoke("--json", "--", sys.executable, "bench.py").stdout)
    assert (said["schema"], said["schema_version"]) == ("krex.explanation", 1)
    assert said["harnesses"][0]["name"] == "triton"
    text = invoke("--", sys.executable, "bench.py").stdout
    assert "recognised: bench.py:1 names triton" in text
    assert "marked: triton.testing.do_bench\n" in text


def test_it_lists_and_describes_presets(folder):
    listed = invoke("--list").stdout
    assert len(listed.splitlines()) == len(table.load())
    described = invoke("--preset", "inductor").stdout
    assert "set_gpu_benchmark_lock_context" in described and "ran here" in described
    assert json.loads(invoke("--preset", "inductor", "--json").stdout)["title"] == "TorchInductor"


def test_presets_of_a_file_are_known(folder):
    mine = '[mine]\ntitle = "Mine"\nwhy = "x"\nmodules = ["mine"]\ncalls = ["mine.loop"]\n'
    (folder / "p.toml").write_text(mine)
    (folder / "bench.py").write_text("import mine\n")
    done = invoke("--presets", "p.toml", "--", sys.executable, "bench.py")
    assert "marked: mine.loop" in done.stdout


def test_errors_say_what_to_do(folder):
    assert invoke().exit_code == 2
    assert invoke("--list", "--preset", "x").exit_code == 2
    for words, region, error in [
        (("--preset", "nope"), "", UsageError),
        (("--", "no-such-program"), "", KrexError),
        (("--", "ls"), "call:f", UsageError),
    ]:
        assert isinstance(invoke(*words, KREX_REGION=region).exception, error)
