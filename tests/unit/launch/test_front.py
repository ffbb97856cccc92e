# SPDX-License-Identifier: Apache-2.0
"""The command line around `krex run`: status, help, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys

from support.fake_controller import DRIVER, Connection, Controller, Runner, plain
from support.waiting import DEADLINE_S

STATUS = {
    "schema": "krex.status",
    "schema_version": 1,
    "controller": {"pid": 1, "version": "0", "socket": "/s", "started_unix_s": 0.0},
    "simulator": {"pid": 9, "socket": "/sim", "devices": 2, "log": "/sim-log.tsv"},
    "devices": [
        {
            "device": "cpu:0",
            "gate": "closed",
            "epoch": 7,
            "slots": 16,
            "slots_used": 3,
            "hold": {"hold_id": "h", "command": "c1", "since_s": 0.25, "marks": 2},
            "queue": [{"command": "c2", "pid": 12, "waited_s": 1.5}],
            "admission": [
                {
                    "command": "c3",
                    "tenant": "0",
                    "argv": ["z"],
                    "alone": True,
                    "place": 1,
                    "waited_s": 2.0,
                    "expected_wait_s": 90.0,
                }
            ],
            "processes": [
                {"pid": 11, "command": "c1", "state": "active", "clean": False, "submissions": 9}
            ],
        }
    ],
    "commands": [
        {
            "command": "c1",
            "tenant": "me",
            "argv": ["python", "a b.py"],
            "device": "cpu:0",
            "root_pid": 11,
            "frozen": False,
            "frozen_s": 0.5,
            "cgroup": None,
        }
    ],
}


def cli(krex: Runner, *words: str) -> subprocess.CompletedProcess[str]:
    process = krex.start(*words)
    out, err = process.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_status_shows_tables_and_json(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("status", status=STATUS)

    controller.play(script, script)
    result = cli(krex, "status", "--json")
    assert result.returncode == 0 and json.loads(result.stdout) == STATUS
    result = cli(krex, "status")
    controller.check()
    assert result.returncode == 0
    for text in (
        "simulated devices: 2, pid 9, log /sim-log.tsv",
        "cpu:0: gate closed (epoch 7), 3 of 16 slots taken",
        "held by c1 for 0.25 s",
        "place 1: c2",
        "to start, place 1: c3 z, 2 s, to be alone, expected to wait 1 min more",
        "'a b.py'",
    ):
        assert text in result.stdout


def test_status_without_a_controller_is_1(krex: Runner) -> None:
    result = cli(krex, "status")
    assert result.returncode == 1 and "no controller runs" in result.stderr and not result.stdout
    result = cli(krex, "status", "--json")
    found = json.loads(result.stdout)
    assert result.returncode == 1 and found["schema"] == "krex.status"
    assert found["schema_version"] == 1 and found["controller"] is None


def test_help_lists_the_commands_and_imports_none(krex: Runner) -> None:
    result = cli(krex, "--help")
    assert result.returncode == 0
    for name in ("run", "serve", "status", "lib-path"):
        assert f"\n  {name} " in result.stdout
    script = (
        "import sys; from krex.cli.group import group; group(['--help'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith(('krex.cli', 'krex.launch'))])"
    )
    listed = subprocess.run(
        [sys.executable, "-c", script],
        env=krex.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert listed.stdout.endswith("['krex.cli', 'krex.cli.group']\n")


def test_a_misspelt_command_is_a_usage_error(krex: Runner) -> None:
    result = cli(krex, "statsu")
    assert result.returncode == 2 and "statsu" in result.stderr


def test_a_run_imports_neither_click_nor_anything_heavy(
    krex: Runner, controller: Controller
) -> None:
    controller.play(plain)
    hook = "import os; leave = os._exit\n"
    hook += "os._exit = lambda status: (print(*sys.modules, flush=True), leave(status))"
    krex.base[2] = DRIVER.replace("main()", f"{hook}\nmain()")
    loaded = set(krex.run("true").stdout.split())
    controller.check()
    assert "krex.launch.session" in loaded
    heavy = {"click", "typing", "dataclasses", "inspect", "subprocess", "asyncio", "pathlib"}
    assert loaded & heavy == set()
