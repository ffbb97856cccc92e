# SPDX-License-Identifier: Apache-2.0
"""`krex run` with the real controller, started by itself, and the real library."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- exit status, output


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_status_is_the_commands(cli: Krex, script: str, status: int) -> None:
    assert cli("run", "--", "sh", "-c", script).returncode == status


def test_our_own_exit_statuses(cli: Krex) -> None:
    assert cli("run", "--", "no-such-tool").returncode == 127
    assert cli("run", "--", "/etc/passwd").returncode == 126
    assert cli("run", "--report", "/no/such/r", "--", "true").returncode == 125
    assert cli("run", "--device", "no:such", "--", "true").returncode == 125
    assert cli("run").returncode == 2
    assert cli("run", "--gpux", "0", "true").returncode == 2


@pytest.mark.parametrize("exclusive", ["region", "none"])
def test_stdout_is_the_commands_alone(cli: Krex, exclusive: str) -> None:
    result = cli("run", "-v", "--exclusive", exclusive, "--", "echo", "a  b")
    assert (result.returncode, result.stdout) == (0, "a  b\n")
    assert all(line.startswith("krex: ") for line in result.stderr.splitlines())


def test_quiet_is_quiet(cli: Krex) -> None:
    assert cli("run", "-q", "--", "true").stderr == ""


def test_stdin_reaches_the_command(cli: Krex) -> None:
    process = cli.start("run", "--", "cat", stdin=subprocess.PIPE)
    assert process.communicate("through\n", timeout=DEADLINE_S)[0] == "through\n"


def test_a_pipe_behind_the_run_ends(cli: Krex) -> None:
    # The controller that this starts must not hold the pipe open.
    words = [*cli.base, "run", "--", "echo", "through"]
    result = subprocess.run(
        ["sh", "-c", '"$@" 2>&1 | cat', "sh", *words],
        env=cli.env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert "through\n" in result.stdout
    assert cli.controller_pid()


# ---------------------------------------------------------------- the controller


def test_the_controller_is_nobodys_child(cli: Krex) -> None:
    cli("run", "--", "true")
    pid = cli.controller_pid()
    assert os.getsid(pid) == pid
    descriptors = Path(f"/proc/{pid}/fd")
    assert {os.readlink(descriptors / str(fd)) for fd in (0, 1, 2)} == {"/dev/null"}  # noqa: PTH115
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"LD_PRELOAD=" not in environment and b"KREX_COMMAND=" not in environment


def test_runs_that_start_together_share_one_controller(cli: Krex) -> None:
    runs = [cli.start("run", "--", "sleep", "0.5") for _ in range(6)]
    pids = {wait_for(lambda: (cli.status()["controller"] or {}).get("pid"))}
    for process in runs:
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0 and "without protection" not in err
    pids.add(cli.controller_pid())
    assert len(pids) == 1


def test_status_shows_the_running_command(cli: Krex) -> None:
    process = cli.start("run", "--tenant", "me", "--", "sleep", "30")
    commands = wait_for(lambda: cli.status()["commands"])
    assert commands[0]["argv"] == ["sleep", "30"] and commands[0]["tenant"] == "me"
    assert "sleep 30" in cli("status").stdout
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 143
    wait_for(lambda: not cli.status()["commands"])


def test_a_killed_controller_does_not_take_the_command_along(cli: Krex) -> None:
    process = cli.start("run", "--", "sh", "-c", "echo ready; sleep 1; exit 5")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    pid = cli.controller_pid()
    os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 5 and "controller is gone" in err
    assert list(Path("/sys/fs/cgroup").rglob(f"krex-c-{pid}-*")) == []
    assert cli("run", "--", "true").returncode == 0
    assert cli.controller_pid() != pid


# ---------------------------------------------------------------- what the command finds


def test_the_library_is_loaded_and_an_existing_preload_kept(cli: Krex) -> None:
    (cli.folder / "other.c").write_text("int other;\n")
    other = cli.folder / "other.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", other, cli.folder / "other.c"], check=True, timeout=60
    )
    cli.env["LD_PRELOAD"] = str(other)
    maps = cli("run", "--", "cat", "/proc/self/maps").stdout
    assert str(other) in maps and cli("lib-path").stdout.strip() in maps


def test_a_path_with_spaces(place: Path) -> None:
    parent = place / "a place of my own"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "krex", parent / "krex", ignore=ignored)
    cli = Krex(place, parent)
    try:
        result = cli("run", "--", "cat", "/proc/self/maps")
        assert result.returncode == 0
        assert str(parent / "krex" / "lib" / "libkrex.so") in result.stdout
        assert "cannot be preloaded" not in result.stderr
    finally:
        cli.close()


def test_a_command_and_a_report_with_spaces(cli: Krex) -> None:
    tool = cli.folder / "my tools" / "a tool"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s|" "$0" "$@"\n')
    tool.chmod(0o755)
    result = cli("run", "--report", "my tools/the report", "--", str(tool), "one word", "")
    assert (result.returncode, result.stdout) == (0, f"{tool}|one word||")
    assert (tool.parent / "the report").read_text() == ""


def test_krex_is_importable_in_the_command(cli: Krex) -> None:
    # An interpreter that knows of nothing but the standard library.
    script = "import krex\nwith krex.region('r'): pass\nprint('imported')"
    result = cli("run", "--", "python3", "-S", "-c", script)
    assert result.stdout == "imported\n", result.stderr


def test_no_descriptor_of_ours_is_inherited(cli: Krex) -> None:
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    result = cli("run", "--report", "r", "--", sys.executable, "-c", script)
    assert result.stdout == "['0', '1', '2', '3']\n"


def test_a_nested_run_joins_the_outer_command(cli: Krex) -> None:
    script = '"$@"; exit $?'
    inner = [*cli.base, "run", "--", "sh", "-c", "echo $KREX_COMMAND; exit 9"]
    outer = ["run", "--", "sh", "-c", f"echo $KREX_COMMAND; {script}", "sh", *inner]
    result = cli(*outer)
    assert result.returncode == 9
    first, second = result.stdout.split()
    assert first == second


def test_a_nested_require_says_where_it_belongs(cli: Krex) -> None:
    result = cli("run", "--", *cli.base, "run", "--require", "--", "true")
    assert result.returncode == 125 and "give it to the outer one" in result.stderr


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_sent_by_kill_are_forwarded(cli: Krex, number: signal.Signals) -> None:
    process = cli.start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 128 + number


def test_ctrl_c_reaches_the_command_once(cli: Krex) -> None:
    script = (
        "import signal, time; seen = []\n"
        "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\n"
        "while not seen: time.sleep(0.01)\n"
        "time.sleep(0.3); print('seen', len(seen))"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*cli.base, "run", "--", sys.executable, "-c", script]
        os.execve(words[0], words, cli.env)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    seen += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0 and b"seen 1" in seen


# ---------------------------------------------------------------- lib-path


def test_lib_path_and_include(cli: Krex) -> None:
    library = Path(cli("lib-path").stdout.strip())
    assert library.is_file() and library.name == "libkrex.so"
    include = Path(cli("lib-path", "--include").stdout.strip())
    assert (include / "krex.h").is_file()
