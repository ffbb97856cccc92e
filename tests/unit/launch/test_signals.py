# SPDX-License-Identifier: Apache-2.0
"""Signals, Ctrl-C and job control reach the command, once."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from support.fake_controller import Controller, Runner, plain
from support.waiting import DEADLINE_S, state_of, wait_for

COUNTER = """
import os, signal, sys, time
seen = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, _: seen.append(number))
print("ready", flush=True)
time.sleep(0.5) if not sys.argv[1:] else None
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
print(*[signal.Signals(number).name for number in seen], flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGRTMIN", "SIGQUIT"])
def test_a_signal_sent_to_us_is_passed_on_once(
    krex: Runner, controller: Controller, name: str
) -> None:
    controller.play(plain)
    process = krex.start("run", "--", sys.executable, "-c", COUNTER, name)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert (process.returncode, out, err) == (0, f"{name}\n", "")


def test_a_terminated_run_exits_143(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    process = krex.start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 143


def test_ctrl_c_reaches_the_command_once(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*krex.base, "run", "--", sys.executable, "-c", COUNTER, "SIGINT"]
        os.execve(words[0], words, krex.environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    controller.check()
    seen += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(status) == 0
    assert seen.count(b"SIGINT") == 1
    os.close(terminal)


def test_ctrl_c_ends_an_ordinary_command_with_130(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*krex.base, "run", "--", "sh", "-c", "echo ready; exec sleep 60"]
        os.execve(words[0], words, krex.environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    controller.check()
    assert os.waitstatus_to_exitcode(status) == 130
    os.close(terminal)


def test_job_control_stops_and_continues_both(krex: Runner, controller: Controller) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    # In a session of its own the group would be orphaned, and the kernel drop the stop.
    process = krex.start("run", "--", "sleep", "1", process_group=0)
    wait_for(lambda: started)
    wait_for(lambda: state_of(started[0]) == "S")
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(started[0]) == "T" and state_of(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 0


def test_a_command_that_somebody_stops_does_not_stop_us(
    krex: Runner, controller: Controller
) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    process = krex.start("run", "--", "sleep", "0.3")
    wait_for(lambda: started)
    os.kill(started[0], signal.SIGSTOP)
    wait_for(lambda: state_of(started[0]) == "T")
    time.sleep(0.1)
    assert state_of(process.pid) == "S"
    os.kill(started[0], signal.SIGCONT)
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 0


def test_an_ignored_sigchld_is_survived_and_passed_on(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    setup = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    setup += "os.execv(sys.argv[1], sys.argv[1:])"
    # Not by a shell, which has its own mind about SIGCHLD.
    words = [*krex.base, "run", "--", "grep", "SigIgn", "/proc/self/status"]
    result = subprocess.run(
        [sys.executable, "-c", setup, *words],
        env=krex.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    controller.check()
    assert result.returncode == 0
    assert int(result.stdout.split()[1], 16) >> (signal.SIGCHLD - 1) & 1
