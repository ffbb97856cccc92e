# SPDX-License-Identifier: Apache-2.0
"""A command whose own time limit fired because it was frozen is told so; nobody else is."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

from krex.schemas import FOLDER

PROGRAM = Path(__file__).with_name("process_program.py")
LIMIT_S = 3
# Its time limit runs from before it says "up".
LIMITED = "import signal, time; signal.alarm({}); print('up', flush=True); time.sleep(60)"
OPTIONS = ("-v", "--report", "s.jsonl")


def stands_still(krex: Krex, script: str, until_s: float) -> subprocess.CompletedProcess[str]:
    """Run a script that says "up" beside a region that begins then, and its end."""
    holder = krex.start("run", "--", krex.python_path, str(PROGRAM), "pauses", stdin=-1)
    assert holder.stdout.readline() == "ready\n"
    sibling = krex.start("run", *OPTIONS, "--", "sh", "-c", script)
    assert sibling.stdout.readline() == "up\n"
    began = time.monotonic()
    holder.stdin.write("go\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "inside\n"
    time.sleep(max(0.0, until_s - (time.monotonic() - began)))
    holder.communicate("leave\n", timeout=DEADLINE_S)
    out, err = sibling.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(script, sibling.returncode, out, err)


def test_a_command_whose_limit_fired_at_its_thaw_is_told_so(krex: Krex):
    # GIVEN a time limit that passes while its command is frozen
    program = shlex.join([krex.python_path, "-c", LIMITED.format(LIMIT_S)])
    done = stands_still(krex, f"exec {program}", LIMIT_S + 0.5)
    # THEN the exit status is what it would have been,
    assert done.returncode == 142
    # one line says why it may be so,
    [line] = [line for line in done.stderr.splitlines() if "time limit" in line]
    assert line.startswith("krex: the command ended with status 142")
    # and the report.
    [record] = krex.records("s.jsonl")
    schema = json.loads((FOLDER / "command-record.schema.json").read_text())
    Draft202012Validator(schema).validate(record)
    assert (record["schema"], record["status"]) == ("krex.command", 142)
    assert record["limit_suspected"] and record["freezes"] == 1
    assert record["longest_freeze_s"] == record["frozen_s"] >= 0.1
    assert record["after_thaw_s"] <= 1 and record["duration_s"] >= LIMIT_S


@pytest.mark.parametrize("script", ["echo up; sleep 0.1", "echo up; sleep 0.1; kill -INT $$"])
def test_a_command_that_did_not_fail_is_not_told(krex: Krex, script: str):
    done = stands_still(krex, script, 0.5)
    # It stood still, as -v says;
    assert "the command stood still 1 times" in done.stderr
    # but a report is a list of regions.
    assert "time limit" not in done.stderr and krex.records("s.jsonl") == []


def test_a_command_that_failed_without_standing_still_is_not_told(krex: Krex):
    done = krex("run", *OPTIONS, "--", "sh", "-c", "exit 1")
    assert (done.returncode, krex.records("s.jsonl")) == (1, [])
    assert "time limit" not in done.stderr and "stood still" not in done.stderr


def test_a_frozen_command_that_is_killed_from_outside_is_told(krex: Krex):
    # GIVEN a harness with a limit around `krex run`, which passes it on to a frozen command
    holder = krex.start("run", "--", krex.python_path, str(PROGRAM), "pauses", stdin=-1)
    assert holder.stdout.readline() == "ready\n"
    sibling = krex.start("run", *OPTIONS, "--", "sh", "-c", "echo up; exec sleep 60")
    assert sibling.stdout.readline() == "up\n"
    holder.stdin.write("go\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "inside\n"
    wait_for(lambda: any(c["frozen"] for c in krex.status()["commands"]))
    time.sleep(0.2)
    sibling.terminate()
    _, err = sibling.communicate(timeout=DEADLINE_S)
    holder.communicate("leave\n", timeout=DEADLINE_S)
    # THEN it ends at once, and is told
    assert sibling.returncode == 143 and "time limit" in err
    [record] = krex.records("s.jsonl")
    assert record["after_thaw_s"] < 1 and record["frozen_s"] >= 0.2
