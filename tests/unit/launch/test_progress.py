# SPDX-License-Identifier: Apache-2.0
"""What is seen of a wait for a slot: on a terminal, in a log, and with --quiet."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
from pathlib import Path
from typing import Any

import pytest
from support.fake_controller import Connection, Controller, Runner

from krex.launch.progress import describe

FULL = {"why": "all 16 slots of cpu:0 are taken", "expected_wait_s": None, "of": 5}
LONE = FULL | {"why": "a command has the device for itself"}


class Terminal:
    """`krex run` at a terminal of so many columns."""

    def __init__(self, krex: Runner, *words: str, columns: int = 200) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("=4H", 24, columns, 0, 0))
            words = (*krex.base, "run", *words)
            os.execve(words[0], words, krex.environment | {"TERM": "xterm"})
        self.shown = ""

    def read_until(self, text: str) -> None:
        while text not in self.shown:
            self.shown += os.read(self.fd, 4096).decode()

    def end(self) -> int:
        """Its wait status; all it showed is in `shown`."""
        try:
            while data := os.read(self.fd, 4096):
                self.shown += data.decode()
        except OSError:  # what a terminal says when nobody has it open any more
            pass
        os.close(self.fd)
        return os.waitpid(self.pid, 0)[1]


def told(connection: Connection) -> Any:
    message = connection.receive_any()
    assert message is not None and message["op"] == "told"
    return message["all"]


def test_a_terminal_shows_one_line_that_is_kept_up_to_date(
    krex: Runner, controller: Controller
) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=3, **FULL | {"expected_wait_s": 90.0})
        assert told(connection) is True
        connection.send("waiting", place=2, **FULL)
        assert told(connection) is True
        connection.admit()
        connection.finish()

    controller.play(script)
    terminal = Terminal(krex, "echo", "ran")
    assert terminal.end() == 0
    controller.check()
    # THEN each state replaces the one before it, and the last is erased before the command runs
    first, second, rest = terminal.shown.split("\x1b[K", 2)
    assert first.startswith("\rkrex: waiting, place 3 of 5, expected to take ")
    assert first.endswith("all 16 slots of cpu:0 are taken")
    assert second == "\rkrex: waiting, place 2 of 5: all 16 slots of cpu:0 are taken"
    assert rest == "\r\x1b[Kran\r\n"


def test_the_line_is_cut_at_the_edge_of_the_terminal(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=3, **FULL)
        told(connection)
        connection.admit()
        connection.finish()

    controller.play(script)
    terminal = Terminal(krex, "true", columns=40)
    assert terminal.end() == 0
    controller.check()
    assert terminal.shown == "\rkrex: waiting, place 3 of 5: all 16 slo\x1b[K\r\x1b[K"


def test_ctrl_c_ends_the_wait_at_once_and_erases_the_line(
    krex: Runner, controller: Controller
) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=1, **FULL)
        assert connection.receive() is None

    controller.play(script)
    terminal = Terminal(krex, "echo", "ran")
    terminal.read_until("taken")
    os.write(terminal.fd, b"\x03")
    status = terminal.end()
    controller.check()
    # THEN a shell sees 130
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT
    assert terminal.shown.endswith("\r\x1b[K") and "Traceback" not in terminal.shown


def test_a_log_gets_a_line_when_the_wait_begins_and_when_its_reason_changes(
    krex: Runner, controller: Controller
) -> None:
    def script(connection: Connection) -> None:
        for place, state in ((3, FULL), (2, FULL), (1, LONE)):
            connection.send("waiting", place=place, **state)
            assert told(connection) is False
        connection.admit()
        connection.finish()

    controller.play(script, script)
    assert krex.run("true").stderr.splitlines() == [
        "krex: waiting, place 3 of 5: all 16 slots of cpu:0 are taken",
        "krex: waiting, place 1 of 5: a command has the device for itself",
    ]
    assert krex.run("-q", "true").stderr == ""
    controller.check()


def test_a_quiet_terminal_shows_nothing(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=3, **FULL)
        assert told(connection) is False
        connection.admit()
        connection.finish()

    controller.play(script)
    terminal = Terminal(krex, "-q", "echo", "ran")
    assert terminal.end() == 0
    controller.check()
    assert terminal.shown == "ran\r\n"


def test_an_unknown_message_does_not_disturb_the_wait(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=1, **FULL)
        connection.send("of_a_later_version")
        connection.admit()
        connection.finish()

    controller.play(script)
    assert krex.run("echo", "ran").stdout == "ran\n"
    controller.check()


def test_a_run_inside_a_command_joins_it_whatever_its_environment_says(
    krex: Runner, controller: Controller, place: Path
) -> None:
    def script(connection: Connection) -> None:
        connection.send("join", command="c9", lacking=["it cannot be frozen"])
        assert connection.receive() is None

    controller.play(script)
    done = krex.run("--report", "r", "--", "sh", "-c", "echo $KREX_COMMAND $KREX_REPORT", cwd=place)
    controller.check()
    assert (done.returncode, done.stdout) == (0, f"c9 {place}/r\n")
    assert done.stderr == "krex: it cannot be frozen\n"


@pytest.mark.parametrize(
    ("seconds", "age", "text"),
    [
        (0.2, 0.0, ", expected to take 1 s"),
        (25.4, 0.0, ", expected to take 25 s"),
        (25.4, 10.0, ", expected to take 15 s"),
        (90.0, 0.0, ", expected to take 2 min"),
        (7500.0, 0.0, ", expected to take 2 h 5 min"),
        # It took longer than was expected: nobody knows how long it will take now.
        (25.4, 26.0, ""),
        (None, 0.0, ""),
    ],
)
def test_the_expected_wait_counts_down_and_then_goes(
    seconds: float | None, age: float, text: str
) -> None:
    message = {"place": 1, "of": 2, "why": "so", "expected_wait_s": seconds}
    assert describe(message, age) == f"waiting, place 1 of 2{text}: so"
