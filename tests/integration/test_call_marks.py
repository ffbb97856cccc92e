# SPDX-License-Identifier: Apache-2.0
"""KREX_REGION=call:... in the interpreters of tenants: old, new, spawned, by other environments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.command_line import Krex
from support.interpreters import VERSIONS, interpreter

from krex import paths

HERE = Path(__file__).parent
PROGRAM = HERE / "call_program.py"
FUNCTIONS = ("plain", "items", "awaited", "fails", "cached")
METHODS = ("run", "of_class", "static", "value")
KINDS = [f"call_harness.{name}" for name in FUNCTIONS]
KINDS += [f"call_harness.Timer.{name}" for name in METHODS]
CALLS = "call:" + ",".join(KINDS)


@pytest.fixture
def sim(cli: Krex) -> Krex:
    """A command line whose commands run on a simulated GPU and find the harness."""
    cli.env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), cli.env.get("PYTHONPATH")]))
    return cli


def run(
    sim: Krex, python: list[str], *words: str, region: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = ("run", "--sim", "--report", "r", *options, "--", *python, *words)
    return sim(*command, env=sim.env | {"KREX_REGION": region})


def names(sim: Krex) -> list[str]:
    return [r["name"] for r in sim.records("r") if r["schema"] == "krex.region"]


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_of_functions_of_every_kind_are_regions(sim: Krex, version: str) -> None:
    # GIVEN a program that knows nothing of krex, in an interpreter that has none
    python = interpreter(version)
    # WHEN KREX_REGION names functions of a module that it imports
    done = run(sim, python, str(PROGRAM), "kinds", region=CALLS)
    # THEN it does what it does without, and the functions look unchanged to it
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    # AND each call is a region, generators' from their first item to their last
    records = sim.records("r")
    assert [record["name"] for record in records] == KINDS
    assert {record["marker"] for record in records} == {"call"}
    assert [r["reasons"] for r in records if not r["exclusive"]] == []


def test_nothing_is_marked_that_was_not_named(sim: Krex) -> None:
    done = run(sim, interpreter("3.8"), str(PROGRAM), "kinds", region="call:call_harness.plain")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(sim) == ["call_harness.plain"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_spawned_child_marks_functions_of_its_main_module(sim: Krex, version: str) -> None:
    # GIVEN a harness whose loop is in the main module of a spawned worker
    # WHEN it runs
    region = "call:__main__.local,call_harness.plain"
    done = run(sim, interpreter(version), str(PROGRAM), "spawn", region=region)
    # THEN its functions are marked there, where the module is called __mp_main__
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert names(sim) == ["__main__.local", "call_harness.plain"]


@pytest.mark.parametrize("words", [["-m", "call_program", "spawn"], [str(PROGRAM), "forkserver"]])
def test_so_do_others_of_its_kind(sim: Krex, words: list[str]) -> None:
    region = "call:__main__.local"
    for version in ("3.8", "3.11"):
        done = run(sim, interpreter(version), *words, region=region)
        assert (done.returncode, done.stdout) == (0, "done\n")
    assert names(sim) == ["__main__.local"] * 2


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_main_module_is_marked_before_its_top_level_calls_anything(
    sim: Krex, version: str
) -> None:
    python = interpreter(version)
    done = run(sim, python, str(PROGRAM), "main", region="call:__main__.local")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    # AND so it is as the module that -m names
    sim.env["PYTHONPATH"] = str(HERE)
    run(sim, [*python, "-m", "call_program"], "main", region="call:call_program.local")
    assert names(sim) == ["__main__.local", "call_program.local"]


@pytest.mark.parametrize("version", ["3.8", "3.11"])
def test_an_old_interpreter_says_that_it_cannot_mark_its_main_module(
    sim: Krex, version: str
) -> None:
    done = run(sim, interpreter(version), str(PROGRAM), "main", region="call:__main__.local")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert f"from CPython 3.12 on; this is {version}" in done.stderr


def test_a_child_with_an_environment_of_its_own_is_marked(sim: Krex) -> None:
    # GIVEN a harness that makes its children's PYTHONPATH of sys.path, as torch's autotuner does
    done = run(sim, interpreter("3.10"), str(PROGRAM), "popen", region="call:call_harness.plain")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert names(sim) == ["call_harness.plain"]


@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_a_child_that_lost_pythonpath_says_once_that_it_marks_nothing(
    sim: Krex, version: str
) -> None:
    # GIVEN a harness that gives its child another PYTHONPATH
    region = "call:call_harness.plain"
    done = run(sim, interpreter(version), str(PROGRAM), "lost", region=region)
    # THEN it runs, and says what is lost and what to do, in one line
    assert (done.returncode, done.stdout) == (0, "done\n")
    child, ours = done.stderr.splitlines()
    assert "without the PYTHONPATH of its command" in child and "krex.region" in child
    # AND krex run, which a user sees in any case, names what had no region, and why that may be
    assert "no region of call_harness.plain" in ours
    assert "without this command's PYTHONPATH" in ours
    assert names(sim) == []


def test_where_no_functions_are_named_a_lost_pythonpath_is_not_told_of(sim: Krex) -> None:
    done = run(sim, interpreter("3.11"), str(PROGRAM), "lost", region="events")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_virtual_environment_is_marked(sim: Krex) -> None:
    made = sim.folder / "venv"
    subprocess.run([*interpreter("3.9"), "-m", "venv", "--without-pip", made], check=True)
    done = run(sim, [str(made / "bin" / "python")], str(PROGRAM), "kinds", region=CALLS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert names(sim) == KINDS


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-Sq"])
def test_an_interpreter_that_cannot_see_us_is_told_of(sim: Krex, flag: str) -> None:
    # GIVEN a Python that was told not to look at its environment, or to run no sitecustomize
    done = run(sim, [*interpreter("3.10"), flag], "-c", "print(1)", region=CALLS)
    # THEN it runs, and krex run says what is lost, and what to do
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert f"python {flag[:2]}" in done.stderr and "so they are not marked" in done.stderr
    assert "krex.region" in done.stderr


@pytest.mark.parametrize(
    "region",
    ["call:", "call:f", "call:a..b", "nvtx:", "evnts", "none,events", "call:a.b,,", "auto,x.y"],
)
def test_a_wrong_specification_ends_krex_run_before_anything_starts(cli: Krex, region: str) -> None:
    done = cli("run", "--", "touch", "started", env=cli.env | {"KREX_REGION": region})
    assert (done.returncode, done.stdout) == (2, "")
    assert "KREX_REGION: " in done.stderr and "correct or unset it" in done.stderr
    assert not (cli.folder / "started").exists()


def test_names_that_do_not_exist_are_told_of_once(sim: Krex) -> None:
    # GIVEN names of which a function, a method, a module and nothing at all are missing
    parts = ("plain", "nope", "Timer.nope", "Timer")
    region = ",".join(["call:no_module.f", *(f"call_harness.{part}" for part in parts)])
    # WHEN a command runs that spawns children
    done = run(sim, interpreter("3.11"), str(PROGRAM), "spawn", region=region)
    # THEN its first process says what is wrong with those that it can tell of, each in one line
    lines = [line for line in done.stderr.splitlines() if "is not marked" in line]
    assert [line.partition(" is not marked: ")[2] for line in lines] == [
        "call_harness has no nope",
        "call_harness has no Timer.nope",
        "it is a class; name a method of it, as in NAME.run",
    ]
    # AND krex run tells of all that had no region
    assert "no region of no_module.f, call_harness.nope, call_harness.Timer.nope" in done.stderr
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert names(sim) == ["call_harness.plain"]


def test_a_program_that_sets_a_wrong_specification_itself_runs_unmarked(sim: Krex) -> None:
    shell = ["sh", "-c", f"KREX_REGION=cal:a.b {interpreter('3.8')[0]} -c 'print(1)'"]
    done = run(sim, shell, region="auto")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "'cal:a.b' is none of its items" in done.stderr


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [("p.toml", '[x]\ntitle = "x"\n', "p.toml: "), ("nowhere.toml", "", "cannot be read")],
)
def test_wrong_presets_end_krex_run_before_anything_starts(
    cli: Krex, option: str, text: str, said: str
) -> None:
    (cli.folder / "p.toml").write_text(text)
    done = cli("run", "--presets", option, "--", "touch", "started")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (cli.folder / "started").exists()


# ---------------------------------------------------------------- what others have in there


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interpreter_with_nothing_to_mark_loads_next_to_nothing(version: str) -> None:
    # GIVEN an interpreter that watches for known harnesses, and one that does not
    code = "import sys; print(*sorted(sys.modules))"
    env = {name: text for name, text in os.environ.items() if not name.startswith("KREX_")}
    loaded = []
    for path in ("", paths.watch_dir()):
        words = [*interpreter(version), "-c", code]
        done = subprocess.run(words, env=env | {"PYTHONPATH": path}, capture_output=True, text=True)
        loaded.append(set(done.stdout.split()))
    # THEN they differ by three small modules, and the file that starts it
    here = {"_krex_marker", "_krex_marker.start", "_krex_marker.known", "sitecustomize"}
    assert loaded[1] - loaded[0] == here - loaded[0]


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_a_loop_at_the_top_of_the_main_module_is_not_watched(sim: Krex, version: str) -> None:
    # GIVEN a program that calls something over and over at its top level
    program = sim.folder / "loop.py"
    program.write_text(
        "import sys\n"
        "def local(): pass\n"
        "seen = []\n"
        "for i in range(100):\n"
        "    marking = sys.modules.get('_krex_marker.main_module')\n"
        "    if i == 1: marking.mark_main = lambda *_: seen.append(i)\n"
        "    local()\n"
        "print(len(seen))\n"
    )
    # WHEN it runs with a name of its main module THEN each call in it was looked at once
    done = run(sim, interpreter(version), str(program), region="call:__main__.local")
    assert (done.returncode, done.stdout) == (0, "1\n")  # that of print()


@pytest.mark.parametrize("where", ["before", "site-packages"])
def test_a_sitecustomize_of_the_users_runs_and_takes_its_place(sim: Krex, where: str) -> None:
    # GIVEN a sitecustomize on PYTHONPATH, or in the environment's site-packages
    folder = sim.folder / "own"
    python = interpreter("3.11")
    if where == "site-packages":
        subprocess.run([*python, "-m", "venv", "--without-pip", folder], check=True)
        python, folder = [str(folder / "bin" / "python")], next(folder.glob("lib/*/site-packages"))
    else:
        folder.mkdir()
        sim.env["PYTHONPATH"] += os.pathsep + str(folder)
    (folder / "sitecustomize.py").write_text(
        "import sys\nmine = True\nsys.path.append('/by/mine')\n"
    )
    code = (
        "import sys, sitecustomize, call_harness; call_harness.plain(1, c=2);"
        "print(sitecustomize.mine, sys.path.count('/by/mine'))"
    )
    # WHEN a command runs in it
    done = run(sim, python, "-c", code, region="call:call_harness.plain")
    # THEN it runs once, is what the name means, and functions are marked beside it
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 1\n", "")
    assert names(sim) == ["call_harness.plain"]


def test_an_error_in_a_sitecustomize_of_the_users_is_theirs(sim: Krex) -> None:
    (sim.folder / "sitecustomize.py").write_text("import not_there\n")
    sim.env["PYTHONPATH"] += os.pathsep + str(sim.folder)
    without = subprocess.run(
        [*interpreter("3.11"), "-c", "pass"], env=sim.env, capture_output=True, text=True
    )
    done = run(sim, interpreter("3.11"), "-c", "print(1)", region=CALLS)
    assert "No module named 'not_there'" in done.stderr and "not_there" in without.stderr
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_an_interpreter_that_is_too_old_runs_as_it_is(sim: Krex, version: str) -> None:
    done = run(sim, interpreter(version), "-c", "print(1)", region="auto")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_package_called_krex_of_somebody_elses_does_not_matter(sim: Krex) -> None:
    # GIVEN another package of that name, which goes before ours
    own = sim.folder / "own"
    (own / "krex").mkdir(parents=True)
    (own / "krex" / "__init__.py").write_text("raise RuntimeError\n")
    code = "import call_harness; call_harness.plain(1, c=2); print(1)"
    inner = f'PYTHONPATH={own}:$PYTHONPATH exec "$@"'
    # WHEN functions are marked
    words = ["sh", "-c", inner, "-", *interpreter("3.11"), "-c", code]
    done = run(sim, words, region="call:call_harness.plain")
    # THEN it is not imported
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert names(sim) == ["call_harness.plain"]
