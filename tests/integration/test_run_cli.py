# SPDX-License-Identifier: Apache-2.0
"""`krex run` with the real controller, started by itself, and the real library."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 30


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.01)
    raise AssertionError("did not happen in time")


def ended(pid: int) -> bool:
    """Gone, or a zombie: whoever adopted the controller may take its time to reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Krex:
    """The command line, with a controller of this test's own."""

    def __init__(self, place: Path, package_parent: Path = ROOT) -> None:
        self.place = place
        self.base = [sys.executable, "-m", "krex.cli"]
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KREX_")}
        kept.pop("LD_PRELOAD", None)
        self.environment = {
            **kept,
            "KREX_SOCKET": str(place / "s"),
            "PYTHONPATH": str(package_parent),
        }

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        settings: dict[str, Any] = {"stdout": pipe, "stderr": pipe, "text": True}
        settings |= {"env": self.environment, "cwd": self.place} | options
        return subprocess.Popen([*self.base, *words], **settings)

    def __call__(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        with self.start(*words, **options) as process:
            out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def status(self) -> dict[str, Any]:
        return json.loads(self("status", "--json").stdout)

    def controller_pid(self) -> int:
        return int(self.status()["controller"]["pid"])

    def stop(self) -> None:
        controller = self.status()["controller"]
        if controller is not None:
            os.kill(controller["pid"], signal.SIGTERM)
            wait_for(lambda: ended(controller["pid"]))


@pytest.fixture
def place() -> Iterator[Path]:
    # Not tmp_path: a socket's name has 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="krex-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def krex(place: Path) -> Iterator[Krex]:
    cli = Krex(place)
    yield cli
    cli.stop()


# ---------------------------------------------------------------- exit status, output


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_status_is_the_commands(krex: Krex, script: str, status: int) -> None:
    assert krex("run", "--", "sh", "-c", script).returncode == status


def test_our_own_exit_statuses(krex: Krex) -> None:
    assert krex("run", "--", "no-such-tool").returncode == 127
    assert krex("run", "--", "/etc/passwd").returncode == 126
    assert krex("run", "--report", "/no/such/r", "--", "true").returncode == 125
    assert krex("run", "--device", "no:such", "--", "true").returncode == 125
    assert krex("run").returncode == 2
    assert krex("run", "--gpux", "0", "true").returncode == 2


@pytest.mark.parametrize("exclusive", ["region", "none"])
def test_stdout_is_the_commands_alone(krex: Krex, exclusive: str) -> None:
    result = krex("run", "-v", "--exclusive", exclusive, "--", "echo", "a  b")
    assert (result.returncode, result.stdout) == (0, "a  b\n")
    assert all(line.startswith("krex: ") for line in result.stderr.splitlines())


def test_quiet_is_quiet(krex: Krex) -> None:
    assert krex("run", "-q", "--", "true").stderr == ""


def test_stdin_reaches_the_command(krex: Krex) -> None:
    process = krex.start("run", "--", "cat", stdin=subprocess.PIPE)
    assert process.communicate("through\n", timeout=DEADLINE_S)[0] == "through\n"


def test_a_pipe_behind_the_run_ends(krex: Krex) -> None:
    # The controller that this starts must not hold the pipe open.
    words = [*krex.base, "run", "--", "echo", "through"]
    result = subprocess.run(
        ["sh", "-c", '"$@" 2>&1 | cat', "sh", *words],
        env=krex.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert "through\n" in result.stdout
    assert krex.controller_pid()


# ---------------------------------------------------------------- the controller


def test_the_controller_is_nobodys_child(krex: Krex) -> None:
    krex("run", "--", "true")
    pid = krex.controller_pid()
    assert os.getsid(pid) == pid
    descriptors = Path(f"/proc/{pid}/fd")
    assert {os.readlink(descriptors / str(fd)) for fd in (0, 1, 2)} == {"/dev/null"}  # noqa: PTH115
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"LD_PRELOAD=" not in environment and b"KREX_COMMAND=" not in environment


def test_runs_that_start_together_share_one_controller(krex: Krex) -> None:
    runs = [krex.start("run", "--", "sleep", "0.5") for _ in range(6)]
    pids = {wait_for(lambda: (krex.status()["controller"] or {}).get("pid"))}
    for process in runs:
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0 and "without protection" not in err
    pids.add(krex.controller_pid())
    assert len(pids) == 1


def test_status_shows_the_running_command(krex: Krex) -> None:
    process = krex.start("run", "--tenant", "me", "--", "sleep", "30")
    commands = wait_for(lambda: krex.status()["commands"])
    assert commands[0]["argv"] == ["sleep", "30"] and commands[0]["tenant"] == "me"
    assert "sleep 30" in krex("status").stdout
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 143
    wait_for(lambda: not krex.status()["commands"])


def test_a_killed_controller_does_not_take_the_command_along(krex: Krex) -> None:
    process = krex.start("run", "--", "sh", "-c", "echo ready; sleep 1; exit 5")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    pid = krex.controller_pid()
    os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 5 and "controller is gone" in err
    assert list(Path("/sys/fs/cgroup").rglob(f"krex-c-{pid}-*")) == []
    assert krex("run", "--", "true").returncode == 0
    assert krex.controller_pid() != pid


# ---------------------------------------------------------------- what the command finds


def test_the_library_is_loaded_and_an_existing_preload_kept(krex: Krex) -> None:
    (krex.place / "other.c").write_text("int other;\n")
    other = krex.place / "other.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", other, krex.place / "other.c"], check=True, timeout=60
    )
    krex.environment["LD_PRELOAD"] = str(other)
    maps = krex("run", "--", "cat", "/proc/self/maps").stdout
    assert str(other) in maps and krex("lib-path").stdout.strip() in maps


def test_a_path_with_spaces(place: Path) -> None:
    parent = place / "a place of my own"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "krex", parent / "krex", ignore=ignored)
    krex = Krex(place, parent)
    try:
        result = krex("run", "--", "cat", "/proc/self/maps")
        assert result.returncode == 0
        assert str(parent / "krex" / "lib" / "libkrex.so") in result.stdout
        assert "cannot be preloaded" not in result.stderr
    finally:
        krex.stop()


def test_krex_is_importable_in_the_command(krex: Krex) -> None:
    # An interpreter that knows of nothing but the standard library.
    script = "import krex\nwith krex.region('r'): pass\nprint('imported')"
    result = krex("run", "--", "python3", "-S", "-c", script)
    assert result.stdout == "imported\n", result.stderr


def test_no_descriptor_of_ours_is_inherited(krex: Krex) -> None:
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    result = krex("run", "--report", "r", "--", sys.executable, "-c", script)
    assert result.stdout == "['0', '1', '2', '3']\n"


def test_a_nested_run_joins_the_outer_command(krex: Krex) -> None:
    script = '"$@"; exit $?'
    inner = [*krex.base, "run", "--", "sh", "-c", "echo $KREX_COMMAND; exit 9"]
    outer = ["run", "--", "sh", "-c", f"echo $KREX_COMMAND; {script}", "sh", *inner]
    result = krex(*outer)
    assert result.returncode == 9
    first, second = result.stdout.split()
    assert first == second


def test_a_nested_require_says_where_it_belongs(krex: Krex) -> None:
    result = krex("run", "--", *krex.base, "run", "--require", "--", "true")
    assert result.returncode == 125 and "give it to the outer krex run" in result.stderr


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_sent_by_kill_are_forwarded(krex: Krex, number: signal.Signals) -> None:
    process = krex.start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 128 + number


def test_ctrl_c_reaches_the_command_once(krex: Krex) -> None:
    script = (
        "import signal, time; seen = []\n"
        "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\n"
        "while not seen: time.sleep(0.01)\n"
        "time.sleep(0.3); print('seen', len(seen))"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*krex.base, "run", "--", sys.executable, "-c", script]
        os.execve(words[0], words, krex.environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    seen += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0 and b"seen 1" in seen


# ---------------------------------------------------------------- lib-path


def test_lib_path_and_include(krex: Krex) -> None:
    library = Path(krex("lib-path").stdout.strip())
    assert library.is_file() and library.name == "libkrex.so"
    include = Path(krex("lib-path", "--include").stdout.strip())
    assert (include / "krex.h").is_file()
