# SPDX-License-Identifier: Apache-2.0
"""`make gpu-check` without a GPU: what it says, and its driver with sections of a test's own."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from gpu import check, probe, site_folder
from gpu.question_addresses import _API, _LINE
from gpu.roads import judge
from gpu.rows import NOT_RUN, PASSED, Job, Row, append, last_run
from gpu.runner import Section, run_all
from gpu.stage import Done
from gpu.table import any_failed, render
from support.waiting import ended, wait_for

from krex.protect.freezer import find_base

DEVICE = probe.Device("sim:0", "a device of the test's", 13000, 1, simulated=False)
PREPARE = """
import os, sys, time
from gpu.attempt import NotRun, attempt
from gpu.rows import Job
job = Job.from_argument(sys.argv[1])
"""


def section(letter: str, code: str, limit_s: float = 60) -> Section:
    return Section(letter, f"section {letter}", [sys.executable, "-c", PREPARE + code], limit_s)


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the check with these sections; returns its status, its rows and what it printed."""

    def run(*sections: Section, words: tuple[str, ...] = (), device: probe.Device = DEVICE):
        out = tmp_path / "rows.jsonl"
        status = check.main(["--out", str(out), *words], sections, None, lambda *_: device)
        return status, last_run(str(out)) if out.exists() else [], capsys.readouterr().out

    return run


def texts(rows: list[Row]) -> list[tuple[str, str, str]]:
    return [(row.section, row.verdict, row.text) for row in rows[1:]]  # the first is the device


def test_without_a_gpu_it_says_so_on_one_line_and_exits_77(root, tmp_path):
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, str(root / "tests/gpu/check.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 77 and done.stderr == ""
    assert re.fullmatch(r"gpu-check: no GPU here, nothing was checked: .+\n", done.stdout)
    assert not out.exists()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("int cuInit(unsigned f) { return 100; }", "cuInit failed with error 100"),
        (
            """int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { return 0; }
               int cuDeviceGetCount(int *n) { *n = 0; return 0; }""",
            "the driver shows no device",
        ),
        ("int cuInit(unsigned f) { __builtin_trap(); }", "the driver ended its process"),
    ],
)
def test_a_driver_without_a_device_is_a_reason(tmp_path, root, code, why):
    # GIVEN a libcuda.so.1 that has no device to show, or crashes
    (tmp_path / "driver.c").write_text(code)
    command = ["gcc", "-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    env = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(root / "tests")}
    # WHEN it is asked THEN the reason is its answer
    with pytest.raises(probe.NoDevice, match=why):
        probe.find(env, str(tmp_path))


def test_a_simulated_device_is_none_unless_asked_for(run):
    simulated = probe.Device("sim:0", "simulated", 13000, 1, simulated=True)
    status, rows, said = run(section("a", ""), device=simulated)
    assert status == 77 and rows == [] and "--allow-simulated" in said
    status, rows, said = run(
        section("a", "job.passed('x', 'y')"), words=("--allow-simulated",), device=simulated
    )
    assert status == 0 and all(row.simulated for row in rows) and "simulated device" in said


def test_rows_are_kept_and_the_limit_ends_everything_of_a_section(run, tmp_path):
    # GIVEN a section that has a child in another group, keeps a row, and goes on for ever
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess
job.passed('first', 'is kept')
child = subprocess.Popen(['sleep', '600'], preexec_fn=os.setpgrp)
open({str(pid_file)!r}, 'w').write(str(child.pid))
time.sleep(600)
"""
    # WHEN its limit is over
    status, rows, _ = run(section("a", code, limit_s=8), section("b", "job.passed('x', 'y')"))
    # THEN its row is there, it is a row that it was killed, its child is gone, and b had its turn
    assert texts(rows) == [
        ("a", "passed", "is kept"),
        ("a", "failed", "killed at its limit of 8 s"),
        ("b", "passed", "y"),
    ]
    assert status == 1
    wait_for(lambda: ended(int(pid_file.read_text())))


def test_what_outlives_a_section_ends_with_it(run, tmp_path):
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess
child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)
open({str(pid_file)!r}, 'w').write(str(child.pid))
"""
    _, rows, _ = run(section("a", code))
    assert rows
    wait_for(lambda: ended(int(pid_file.read_text())))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise RuntimeError('of no use')", "exit status 1: RuntimeError: of no use"),
        ("os.abort()", "ended by SIGABRT: it said nothing"),
        ("sys.exit(3)", "exit status 3: it said nothing"),
    ],
)
def test_a_crash_of_a_section_is_a_row(run, code, text):
    status, rows, _ = run(section("a", code), section("b", "job.measured('x', 'y')"))
    assert texts(rows) == [("a", "failed", text), ("b", "measured", "y")] and status == 1


def test_a_check_that_crashes_hangs_or_lacks_something_is_a_row(run):
    code = """
def lacks(): raise NotRun('there is no cgroup')
def raises(): raise ValueError('wrong')
attempt(job, 'lacks', lacks, 30)
attempt(job, 'raises', raises, 30)
attempt(job, 'aborts', os.abort, 30)
attempt(job, 'hangs', lambda: time.sleep(600), 0.2)
attempt(job, 'works', lambda: job.passed('works', 'fine'), 30)
"""
    _, rows, _ = run(section("a", code))
    assert texts(rows) == [
        ("a", "not run", "because there is no cgroup"),
        ("a", "failed", "ValueError: wrong"),
        ("a", "failed", "ended by SIGABRT"),
        ("a", "failed", "did not end within 0.2 s"),
        ("a", "passed", "fine"),
    ]


def test_what_a_check_started_ends_with_it(run, tmp_path):
    # GIVEN a check that hangs, with a child, and one after it that looks for that child
    code = f"""
import subprocess
def hangs():
    child = subprocess.Popen(['sleep', '600'])
    open({str(tmp_path / "pid")!r}, 'w').write(str(child.pid))
    time.sleep(600)
def looks():
    from support.waiting import ended, wait_for
    wait_for(lambda: ended(int(open({str(tmp_path / "pid")!r}).read())))
    job.passed('looks', 'it is gone')
attempt(job, 'hangs', hangs, 5)
attempt(job, 'looks', looks, 60)
"""
    _, rows, _ = run(section("a", code))
    assert texts(rows) == [
        ("a", "failed", "did not end within 5 s"),
        ("a", "passed", "it is gone"),
    ]


def test_what_is_missing_is_no_failure(run):
    status, _, said = run(section("a", "job.not_run('x', 'there is no nvcc')"))
    assert status == 0 and "because there is no nvcc" in said


def test_a_spent_budget_is_a_row_for_each_section_left(run):
    endless = section("a", "time.sleep(600)", limit_s=60)
    status, rows, _ = run(endless, section("b", ""), section("c", ""), words=("--budget", "4"))
    assert texts(rows) == [
        ("a", "failed", "killed at its limit of 4 s"),
        ("b", "not run", "because the budget of 4 s is spent"),
        ("c", "not run", "because the budget of 4 s is spent"),
    ]
    assert status == 1


def test_only_chooses_sections_and_knows_their_names(run, capsys):
    three = [section(letter, f"job.passed('x', '{letter}')") for letter in "abc"]
    _, rows, _ = run(*three, words=("--only", "a,c"))
    assert [text for _, _, text in texts(rows)] == ["a", "c"]
    with pytest.raises(SystemExit) as error:
        run(*three, words=("--only", "a,q"))
    assert error.value.code == 2 and "there is no section q" in capsys.readouterr().err


def test_an_earlier_run_can_be_shown_again(run, tmp_path):
    _, _, first = run(section("a", "job.passed('x', 'the first')"))
    _, _, second = run(section("a", "job.failed('x', 'the second')"))
    # Both are kept in the file; the newest is shown, as it was then.
    status, _, again = run(section("a", ""), words=("--table", str(tmp_path / "rows.jsonl")))
    assert again == second != first and status == 1
    assert "the first" in (tmp_path / "rows.jsonl").read_text()
    status, _, _ = run(section("a", ""), words=("--table", str(tmp_path / "none")))
    assert status == 2


def test_a_row_that_was_cut_off_does_not_hide_the_others(tmp_path):
    path = str(tmp_path / "rows")
    append(path, Row("r", "a", "x", PASSED, "kept"))
    with Path(path).open("a") as file:
        file.write('{"run": "r", "sect')
    assert [row.text for row in last_run(path)] == ["kept"]


HANGS_UNDER_KREX = """
import subprocess
from gpu.stage import stage
with stage(job, 2) as made:
    subprocess.Popen([*made.words(None), "sleep", "60"], env=made.environment)
    while not (groups := list((made.folder / "journal").glob("group-*"))):
        time.sleep(0.02)
    job.passed("group", groups[0].name.removeprefix("group-"))
    time.sleep(60)
"""


def test_a_section_that_is_killed_leaves_no_group_of_its_commands(run):
    if find_base() is None:
        pytest.skip("no cgroup v2 directory that may be written to")
    # GIVEN a section with a controller and a command WHEN it is killed at its limit
    status, rows, _ = run(section("a", HANGS_UNDER_KREX, limit_s=8))
    # THEN the command's cgroup is gone as well
    assert (status, [row.verdict for row in rows[1:]]) == (1, ["passed", "failed"])
    assert not list(Path("/sys/fs/cgroup").rglob(rows[1].text))


def test_a_killed_check_has_kept_its_rows_and_can_still_show_them(root, tmp_path):
    out = tmp_path / "rows.jsonl"
    code = f"""
import sys
sys.path.insert(0, {str(root / "tests")!r})
from gpu.runner import Section, run_all
from gpu.rows import Job
job = Job({str(out)!r}, 'r', 'a', 0.0, 'sim:0', False)
code = 'import os, sys, signal; from gpu.rows import Job; '
code += 'Job.from_argument(sys.argv[1]).passed("x", "kept"); os.kill(os.getppid(), signal.SIGKILL)'
import os
env = os.environ | {{'PYTHONPATH': {str(root / "tests")!r}}}
run_all([Section('a', 't', [sys.executable, '-c', code], 60)], job, 60, env, {str(tmp_path)!r})
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    assert [row.text for row in last_run(str(out))] == ["kept"]


def test_the_table_has_every_row_within_its_width():
    rows = [
        Row("r", "a", "addresses", PASSED, "word " * 60),
        Row("r", "b", "Triton", NOT_RUN, "because there is no triton"),
    ]
    lines = render(rows, 100).splitlines()
    assert max(map(len, lines)) <= 100 and lines[-1] == "1 passed, 1 not run"
    assert sum(line.count("word") for line in lines) == 60
    assert not any_failed(rows)


def test_a_wheel_is_importable_once_unpacked(tmp_path):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "something-1-py3-none-any.whl", "w") as archive:
        archive.writestr("something/__init__.py", "VALUE = 42")
    site = site_folder.unpack(wheels, tmp_path)
    command = [sys.executable, "-c", "import something; print(something.VALUE)"]
    env = os.environ | {"PYTHONPATH": str(site)}
    assert subprocess.run(command, env=env, capture_output=True, timeout=60).stdout == b"42\n"


def test_an_empty_folder_of_wheels_is_a_usage_error(run, tmp_path, capsys):
    with pytest.raises(SystemExit) as error:
        run(section("a", ""), words=("--wheels", str(tmp_path)))
    assert error.value.code == 2 and "make gpu-check-bundle" in capsys.readouterr().err


def test_every_line_of_the_api_is_asked_for():
    lines = [line for line in _API.read_text().splitlines() if line.startswith("KREX_CU_API(")]
    assert len(_LINE.findall(_API.read_text())) == len(lines) > 500


RECORD = {"exclusive": True, "reasons": [], "submissions": 3}


@pytest.mark.parametrize(
    ("done", "right", "text"),
    [
        (Done(0, "", "", [RECORD]), True, "3 submissions in 1 region"),
        (Done(1, "", "the result is wrong", [RECORD]), False, "failed: the result is wrong"),
        (Done(0, "", "", []), False, "no record"),
        (Done(0, "", "", [RECORD | {"submissions": 0}]), False, "passes the gate by"),
        (
            Done(0, "", "", [RECORD | {"exclusive": False, "reasons": ["lease_lost"]}]),
            False,
            "1 not exclusive: lease_lost",
        ),
    ],
)
def test_a_road_is_right_if_its_record_shows_submissions_and_exclusivity(done, right, text):
    said, is_right = judge(done)
    assert is_right is right and text in said


def test_the_sections_of_the_real_check_exist_and_fit_the_budget(root):
    for real in [check.MACHINE, *check.SECTIONS]:
        name = real.command[-1].removeprefix("gpu.")
        assert (root / "tests" / "gpu" / f"{name}.py").exists()
    page = (root / "docs" / "gpu-check.md").read_text()
    assert all(f"## {s.letter}: {s.title}" in page for s in check.SECTIONS)


def test_a_job_survives_the_command_line():
    job = Job("rows", "r", "a", 1.5, "pci:0000:01:00.0", simulated=True)
    assert Job.from_argument(job.to_argument()) == job
    assert json.loads(job.to_argument())["device"] == "pci:0000:01:00.0"


def test_limits_are_cut_to_what_is_left_of_the_budget(tmp_path, root):
    out = str(tmp_path / "rows")
    job = Job(out, "r", "-", 0.0, "sim:0", simulated=False)
    env = os.environ | {"PYTHONPATH": str(root / "tests")}
    run_all(
        [section("a", "job.measured('limit', str(job.limit_s))", 600)], job, 50, env, str(tmp_path)
    )
    assert float(last_run(out)[0].text) <= 50


def test_wheels_that_do_not_fit_are_said_before_anything_runs(run, tmp_path, capsys):
    # GIVEN a folder whose wheel of krex has no native module for this interpreter
    with zipfile.ZipFile(tmp_path / "krex_gpu-1-py3-none-any.whl", "w") as archive:
        archive.writestr("krex/__init__.py", "")
    out = tmp_path / "rows"
    words = ["--wheels", str(tmp_path), "--out", str(out)]
    # WHEN the check is to use it THEN it says so, and how to make another, and checks nothing
    assert check.main(words, [section("a", "")], None, lambda *_: DEVICE) == 2
    assert "make gpu-check-bundle" in capsys.readouterr().err and not out.exists()


@pytest.fixture
def simulated_device(root, tmp_path):
    """The environment in which libcuda.so.1 is the simulated one, with a device process."""
    lib, socket = root / "krex" / "lib" / "sim", tmp_path / "sim.sock"
    command = [str(lib / "krex-sim-device"), "--socket", str(socket), "--devices", "1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            wait_for(socket.exists)
            yield os.environ | {"KREX_SIM_SOCKET": str(socket), "LD_LIBRARY_PATH": str(lib)}
        finally:
            process.terminate()


@pytest.mark.slow
def test_the_questions_and_the_overhead_can_be_had_of_a_simulated_device(
    root, tmp_path, simulated_device
):
    # WHEN two of the real sections run on it
    out = tmp_path / "rows.jsonl"
    words = ["--allow-simulated", "--only", "a,c", "--out", str(out)]
    command = [sys.executable, str(root / "tests/gpu/check.py"), *words]
    done = subprocess.run(
        command, env=simulated_device, capture_output=True, text=True, timeout=110
    )
    # THEN nothing failed, each is answered, every submission was seen, and all says: simulated
    assert done.returncode == 0, done.stdout + done.stderr
    rows = last_run(str(out))
    passed = {row.check for row in rows if row.verdict == PASSED}
    assert passed >= {"addresses", "context events", "queries and captures", "the shim was there"}
    assert all(row.simulated for row in rows)
    # AND what a drain must not do to a capture is told from what it may
    found = [row.text for row in rows if row.check == "queries and captures"]
    assert "INVALID" not in found[0] and any("INVALID" in text for text in found[1:])
