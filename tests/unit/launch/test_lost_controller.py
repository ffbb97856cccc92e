# SPDX-License-Identifier: Apache-2.0
"""A controller that dies or stalls: the command ends, thawed, and its records say so."""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
from pathlib import Path

from support.fake_controller import Connection, Controller, Runner
from support.waiting import wait_for


def test_the_end_of_the_controller_ends_open_records(
    krex: Runner, controller: Controller, place: Path
) -> None:
    def script(connection: Connection) -> None:
        connection.admit()
        connection.send("region_open", record={"region_id": "1", "wait_s": 0.25})

    controller.play(script, script)
    words = ["--", "sh", "-c", "sleep 0.3; exit 8"]
    result = krex.run("--report", "r", *words, cwd=place)
    assert result.returncode == 8
    assert json.loads((place / "r").read_text()) == {
        "region_id": "1", "wait_s": 0.25, "exclusive": False, "reasons": ["controller_lost"],
    }  # fmt: skip
    assert "controller is gone" in result.stderr
    assert krex.run("--require", *words).returncode == 125
    controller.check()


def test_require_does_not_vouch_for_what_a_lost_controller_missed(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: c.admit() and None)
    assert krex.run("--require", "sleep", "0.3").returncode == 125
    controller.check()


def test_a_silent_controller_delays_the_end_by_a_second_at_most(
    krex: Runner, controller: Controller
) -> None:
    def script(connection: Connection) -> None:
        connection.admit()
        connection.expect("ended")
        assert connection.receive() is None

    controller.play(script)
    before = time.monotonic()
    assert krex.run("true").returncode == 0
    assert time.monotonic() - before < 3
    controller.check()


def is_frozen(group: Path) -> bool:
    return "frozen 1" in (group / "cgroup.events").read_text()


def test_the_command_is_born_in_its_cgroup(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    controller.play(lambda c: (c.admit(cgroup=str(cgroup)), c.finish())[0])
    result = krex.run("--", "grep", "^0::", "/proc/self/cgroup")
    controller.check()
    assert result.stdout == f"0::/{cgroup.name}\n" and result.stderr == ""


def test_a_lost_cgroup_is_survived(krex: Runner, controller: Controller) -> None:
    # GIVEN a cgroup in which the command cannot be born, and to which nobody can move it
    failure = "no freezing"
    controller.play(lambda c: (c.admit(cgroup="/no/such/cgroup", failure=failure), c.finish())[0])
    result = krex.run("echo", "ran")
    controller.check()
    assert (result.stdout, result.stderr) == ("ran\n", "krex: no freezing\n")


def test_a_frozen_command_is_thawed_when_the_controller_dies(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    def script(connection: Connection) -> None:
        connection.admit(cgroup=str(cgroup))
        (cgroup / "cgroup.freeze").write_text("1")
        wait_for(lambda: is_frozen(cgroup))

    controller.play(script)
    assert krex.run("--", "sh", "-c", "sleep 0.2; exit 5").returncode == 5
    controller.check()


def test_a_command_may_be_born_frozen(krex: Runner, controller: Controller, cgroup: Path) -> None:
    (cgroup / "cgroup.freeze").write_text("1")

    def script(connection: Connection) -> None:
        pid = connection.admit(cgroup=str(cgroup))["pid"]
        assert str(pid) in (cgroup / "cgroup.procs").read_text().split()
        (cgroup / "cgroup.freeze").write_text("0")
        connection.finish()

    controller.play(script)
    assert krex.run("echo", "ran").stdout == "ran\n"
    controller.check()


def test_a_frozen_command_is_thawed_when_the_lease_runs_out(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    board = os.memfd_create("board")
    os.ftruncate(board, 4096)
    words = mmap.mmap(board, 4096)
    words[:8] = struct.pack("=q", 10**9)

    def script(connection: Connection) -> None:
        connection.admit(cgroup=str(cgroup), fds=[board])
        (cgroup / "cgroup.freeze").write_text("1")
        wait_for(lambda: is_frozen(cgroup))
        time.sleep(0.7)
        assert is_frozen(cgroup)  # the lease holds, and so does the freeze
        words[:8] = struct.pack("=q", -1)
        connection.finish()

    controller.play(script)
    result = krex.run("--", "sh", "-c", "sleep 0.2; exit 5")
    controller.check()
    assert result.returncode == 5 and "lease" in result.stderr
