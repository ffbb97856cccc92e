# SPDX-License-Identifier: Apache-2.0
"""What a user of `krex run` gets to see: the queue, the records, the sum of them."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

from support.fake_controller import Connection, Controller, Runner
from support.waiting import DEADLINE_S


def test_the_queue_is_visible(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=3, why="16 commands run on cpu:0")
        connection.admit(lacking=["nothing can be frozen; run `krex doctor`"])
        connection.finish()

    controller.play(script, script, script)
    assert krex.run("true").stderr.splitlines() == [
        "krex: waiting, place 3: 16 commands run on cpu:0",
        "krex: nothing can be frozen; run `krex doctor`",
    ]
    assert krex.run("-q", "true").stderr == ""
    assert "krex: command c7 admitted to cpu:0\n" in krex.run("-v", "true").stderr
    controller.check()


def test_a_waiting_run_can_be_interrupted(krex: Runner, controller: Controller) -> None:
    waiting, gone = threading.Event(), threading.Event()

    def script(connection: Connection) -> None:
        connection.send("waiting", place=1, why="busy")
        waiting.set()
        assert connection.receive() is None
        gone.set()

    controller.play(script)
    process = krex.start("run", "true")
    assert waiting.wait(DEADLINE_S)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == -signal.SIGINT and "Traceback" not in err and gone.is_set()


def regions(connection: Connection) -> None:
    connection.admit()
    for index, exclusive in enumerate((True, False, False)):
        known = {"region_id": str(index), "name": "loop"}
        connection.send("region_open", record=known)
        reasons = [] if exclusive else ["sibling_not_frozen"]
        connection.send("region", record={**known, "exclusive": exclusive, "reasons": reasons})
    connection.finish()


def test_records_are_reported_and_summed_up(
    krex: Runner, controller: Controller, place: Path
) -> None:
    controller.play(regions, regions)
    result = krex.run("--report", "r", "--", "sleep", "0.1", cwd=place)
    assert result.returncode == 0
    assert result.stderr == ("krex: 2 of 3 regions not exclusive: sibling_not_frozen (all in r)\n")
    records = [json.loads(line) for line in (place / "r").read_text().splitlines()]
    assert [record["exclusive"] for record in records] == [True, False, False]
    result = krex.run("-q", "--require", "--", "true")
    controller.check()
    assert result.returncode == 125
    assert "2 of 3 regions not exclusive" in result.stderr


def test_verbose_tells_each_region(krex: Runner, controller: Controller) -> None:
    controller.play(regions)
    result = krex.run("-v", "true")
    controller.check()
    assert result.stderr.count("region loop: ") == 3


def test_a_full_disk_does_not_stop_the_command(krex: Runner, controller: Controller) -> None:
    controller.play(regions)
    result = krex.run("--report", "/dev/full", "--", "sh", "-c", "exit 3")
    controller.check()
    assert result.returncode == 3 and "cannot write to /dev/full" in result.stderr
