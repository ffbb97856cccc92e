# SPDX-License-Identifier: Apache-2.0
"""`krex run` from start to end: what the command finds, and what comes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fake_controller import Controller, Runner, plain
from support.waiting import DEADLINE_S

from krex.launch.channel import PROTOCOL


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_status_is_the_commands(
    krex: Runner, controller: Controller, script: str, status: int
) -> None:
    ended: list[dict[str, Any]] = []
    controller.play(lambda c: (c.admit(), ended.append(c.finish()))[0])
    result = krex.run("--", "sh", "-c", script)
    controller.check()
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")
    assert ended == [{"op": "ended", "status": status}]


def test_the_request_says_what_the_user_asked(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    krex.environment["KREX_REGION"] = "whole"
    words = ["--device", "cpu:0,cpu:1", "--tenant", "t", "--exclusive", "none", "--max-wait", "1.5"]
    assert (
        krex.run(
            *words, "--max-hold", "2", "--protect", "pin", "--mem", "1.5GiB", "--", "echo", "a b"
        ).stdout
        == "a b\n"
    )
    controller.check()
    assert controller.requests == [
        {
            "op": "run",
            "protocol": PROTOCOL,
            "argv": ["echo", "a b"],
            "tenant": "t",
            "devices": ["cpu:0", "cpu:1"],
            "simulated": None,
            "exclusive": "none",
            "protect": "pin",
            "memory": 3 << 29,
            "region": "whole",
            "max_wait_s": 1.5,
            "max_hold_s": 2.0,
            "cpus": sorted(os.sched_getaffinity(0)),
        }
    ]


def test_the_defaults_of_a_request(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    krex.run("true")
    controller.check()
    (request,) = controller.requests
    assert request["exclusive"] == "region" and request["region"] == "auto"
    assert request["max_hold_s"] == 30.0 and request["max_wait_s"] is None
    assert request["tenant"] is None and request["devices"] is None
    assert request["protect"] == "freeze" and request["memory"] is None


def test_the_command_sees_its_environment(
    krex: Runner, controller: Controller, library: Path
) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    result = krex.run("--", "sh", "-c", "echo $$ $KREX_COMMAND $KREX_SOCKET $LD_PRELOAD")
    controller.check()
    assert result.stdout.split() == [
        str(started[0]), "c7", krex.environment["KREX_SOCKET"], str(library),
    ]  # fmt: skip


def test_the_command_inherits_no_descriptor_of_ours(
    krex: Runner, controller: Controller, place: Path
) -> None:
    board = os.memfd_create("board")
    os.ftruncate(board, 4096)
    controller.play(lambda c: (c.admit(fds=[board]), c.finish())[0])
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    report = str(place / "r")
    result = krex.run("--report", report, "--", sys.executable, "-c", script)
    controller.check()
    # The fourth is the directory being listed.
    assert result.stdout == "['0', '1', '2', '3']\n"


def test_descriptors_of_the_caller_are_passed_on(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    read_end, write_end = os.pipe()
    script = f"import os; os.write({write_end}, b'hello')"
    krex.run("--", sys.executable, "-c", script, pass_fds=[write_end])
    controller.check()
    os.close(write_end)
    assert os.read(read_end, 100) == b"hello"
    os.close(read_end)


def test_closed_stdio_stays_closed(krex: Runner, controller: Controller, place: Path) -> None:
    controller.play(plain)
    script = "ls /proc/self/fd > seen; exit 3"
    words = [*krex.base, "run", "--report", "r", "--", "sh", "-c", script]
    result = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words],
        env=krex.environment,
        cwd=place,
        timeout=DEADLINE_S,
        check=False,
    )
    controller.check()
    assert result.returncode == 3
    # The shell's redirection is 1; ls opened the directory as the lowest free one.
    assert (place / "seen").read_text().split() == ["0", "1"]
    assert (place / "r").read_text() == ""


def test_signal_dispositions_are_those_we_were_started_with(
    krex: Runner, controller: Controller
) -> None:
    controller.play(plain)
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
    direct = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert krex.run("--", "sh", "-c", script).stdout == direct.stdout
    controller.check()


def test_stdin_is_the_commands(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    process = krex.start("run", "--", "cat", stdin=subprocess.PIPE)
    assert process.communicate("through\n", timeout=DEADLINE_S)[0] == "through\n"
    controller.check()


def test_a_script_without_a_first_line_runs_as_in_a_shell(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "script").write_text("echo $1; exit 5\n")
    (place / "script").chmod(0o755)
    controller.play(plain)
    result = krex.run("--", str(place / "script"), "arg")
    controller.check()
    assert (result.returncode, result.stdout) == (5, "arg\n")


def test_a_nested_run_joins_the_enclosing_command(
    krex: Runner, controller: Controller, place: Path
) -> None:
    controller.play(plain)
    krex.environment["KREX_COMMAND"] = "c1"
    result = krex.run(
        "--report", "r", "--", "sh", "-c", "echo $KREX_COMMAND $KREX_REPORT", cwd=place
    )
    assert result.stdout == f"c1 {place}/r\n" and result.stderr == ""
    assert controller.requests == []


def test_nested_options_without_effect_say_so(krex: Runner, controller: Controller) -> None:
    krex.environment["KREX_COMMAND"] = "c1"
    result = krex.run("--require", "true")
    assert result.returncode == 125 and "give it to the outer one" in result.stderr
    result = krex.run("--device", "cpu:0", "true")
    assert result.returncode == 0 and "--device has no effect" in result.stderr


def test_a_left_over_krex_command_is_not_nested(krex: Runner) -> None:
    krex.environment |= {"KREX_COMMAND": "c1", "KREX_SOCKET": "/proc/none/s"}
    assert "without protection" in krex.run("true").stderr
