# SPDX-License-Identifier: Apache-2.0
"""What KREX really writes is what its committed schemas, and so its docs, say."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.waiting import DEADLINE_S, wait_for

from krex.schemas import FOLDER
from krex.schemas.reference import walk

RUN = [sys.executable, "-m", "krex.cli", "run"]

# Enters a region, says so, and stays in it until its stdin ends.
STAYS = """
import sys, krex
with krex.region("stays"):
    print("inside", flush=True)
    sys.stdin.read()
"""

# Keys that a CPU device has nothing to say under: it has no slice, no memory of its own, nobody who
# knows its processes, and is not simulated. The last ones are of timed pairs, of automatic
# marks, and of time limits: the program has none.
OF_A_GPU = (
    *(
        "cpus.",
        "handshake.pin_s",
        "oom_while_shared",
        "foreign_processes",
        "simulated",
        "simulator.",
    ),
    "timing.shortest_pair",
    "earlier_holds",
    "limit_wait_s",
)


def schema(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.schema.json").read_text())


def documented(name: str) -> set[str]:
    return {path for path, _, _ in walk(schema(name), schema(name), "")}


def keys_of(value: Any, at: str = "") -> Iterator[str]:
    """The dotted paths of all keys in an object, as `walk` gives those of a schema."""
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item, f"{at}[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            path = f"{at}.{key}" if at else key
            yield path
            yield from keys_of(item, path)


def validated(name: str, *objects: dict) -> set[str]:
    """Validate objects and give the keys that they have; none of them may be undocumented."""
    validator = Draft202012Validator(schema(name))
    for each in objects:
        validator.validate(each)
    found = {key for each in objects for key in keys_of(each)}
    assert found - documented(name) == set()
    return found


@pytest.fixture
def stays(krex):
    """Start commands that stay, in a region or not, until their stdin is closed."""

    def start(*words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        child = subprocess.Popen(words, env=krex.env, stdin=pipe, stdout=pipe, text=True)
        krex.started.append(child)
        return child

    return start


def go_on(child: subprocess.Popen[str]) -> None:
    child.stdin.close()
    assert child.wait(DEADLINE_S) == 0


def test_the_records_of_exclusive_regions_have_every_key(krex):
    # GIVEN two commands, of which one at least finds the other on the device
    children = [
        krex.program("--report", str(krex.folder / f"{i}.jsonl"), regions=2) for i in range(2)
    ]
    # WHEN they have run
    assert [child.wait(DEADLINE_S) for child in children] == [0, 0]
    records = krex.records("0.jsonl") + krex.records("1.jsonl")
    # THEN every documented key is there, but for those that only a GPU has
    assert any(record["exclusive"] for record in records)
    keys = {key for key in documented("region-record") if not key.startswith(OF_A_GPU)}
    assert validated("region-record", *records) == keys | {"cpus.no_slice"}


def test_records_of_regions_that_shared_the_device_are_valid(krex):
    report = str(krex.folder / "r.jsonl")
    assert krex.program("--exclusive", "none", "--report", report).wait(DEADLINE_S) == 0
    records = krex.records("r.jsonl")
    assert [record["reasons"] for record in records] == [["exclusive_none"]] * 3
    assert not {"hold_id", "handshake", "work_at_end"} & validated("region-record", *records)


def test_a_command_without_regions_has_no_records(krex):
    run = [*RUN, "--report", str(krex.folder / "r.jsonl"), "--"]
    child = krex.popen(*run, sys.executable, "-c", STAYS, KREX_REGION="none")
    go_on(child)
    assert krex.records("r.jsonl") == []


def test_the_record_of_a_region_past_its_limit_is_valid(krex, stays):
    report = str(krex.folder / "r.jsonl")
    run = [*RUN, "--max-hold", "0.2", "--report", report, "--"]
    child = stays(*run, sys.executable, "-c", STAYS)
    assert child.stdout.readline() == "inside\n"
    # WHEN the limit passes, THEN the region ends there, not where the program leaves it
    [record] = wait_for(lambda: krex.records("r.jsonl"))
    go_on(child)
    validated("region-record", record)
    assert (record["exclusive"], record["reasons"]) == (False, ["max_hold_exceeded"])


def test_the_record_of_a_lost_controller_is_valid(krex, stays):
    # GIVEN a command inside its region
    child = stays(*RUN, "--report", str(krex.folder / "r.jsonl"), "--", sys.executable, "-c", STAYS)
    assert child.stdout.readline() == "inside\n"
    # WHEN the controller is killed
    krex.serve.kill()
    krex.serve.wait()
    go_on(child)
    # THEN krex run writes what it knows
    [record] = krex.records("r.jsonl")
    assert "hold_s" not in validated("region-record", record)
    assert record["reasons"] == ["controller_lost"]


def test_the_record_that_the_controller_itself_writes_is_valid(krex, library):
    report = krex.folder / "r.jsonl"
    child = krex.popen(
        sys.executable, "-c", STAYS, LD_PRELOAD=str(library), KREX_REPORT=str(report)
    )
    go_on(child)
    wait_for(lambda: report.exists() and report.read_text().endswith("\n"))
    [record] = krex.records("r.jsonl")
    assert "hold_s" in validated("region-record", record)
    assert record["exclusive"] and record["command"].startswith("p-")


# ---------------------------------------------------------------- status


def test_a_status_with_a_holder_and_a_queue_has_every_key(krex, stays):
    # GIVEN a bystander, and a command of two processes that both want a region
    bystander = stays(*RUN, "--tenant", "bystander", "--", "sh", "-c", "echo up; cat")
    assert bystander.stdout.readline() == "up\n"
    script = '"$0" -c "$1" <&3 & "$0" -c "$1" <&3; wait'
    command = stays(
        *RUN, "--tenant", "two", "--", "sh", "-c", f"exec 3<&0; {script}", sys.executable, STAYS
    )
    # WHEN one of them is inside and the other waits, and a command wants them all to end first
    assert command.stdout.readline() == "inside\n"
    wait_for(lambda: krex.status()["devices"][0]["queue"])
    krex.start("run", "--exclusive", "command", "--", "true")
    wait_for(lambda: krex.status()["devices"][0]["admission"])
    status = krex.status()
    # THEN the status has every documented key, and it is all true
    keys = {key for key in documented("status") if not key.startswith(OF_A_GPU)}
    assert validated("status", status) == keys
    [device] = status["devices"]
    names = {c["tenant"]: c["command"] for c in status["commands"]}
    assert device["gate"] == "closed" and device["epoch"] % 2 == 1
    assert device["hold"]["command"] == device["queue"][0]["command"] == names["two"]
    assert len(device["processes"]) == 2 and device["processes"][0]["state"] == "live"
    frozen = {c["command"]: c["frozen"] for c in status["commands"]}
    assert frozen == {names["two"]: False, names["bystander"]: True}
    go_on(command)
    go_on(bystander)


def test_the_status_without_a_controller_is_valid(krex):
    krex.serve.terminate()
    krex.serve.wait()
    done = krex("status", "--json")
    assert done.returncode == 1
    status = json.loads(done.stdout)
    validated("status", status)
    assert (status["controller"], status["devices"], status["commands"]) == (None, [], [])


def test_a_status_of_many_long_commands_fits_into_its_packet(krex, stays):
    # GIVEN commands whose lines alone would be more than a socket takes at once
    children = [stays(*RUN, "--", "sh", "-c", "cat", "word " * 12000) for _ in range(8)]
    wait_for(lambda: len(krex.status()["commands"]) == len(children))
    status = krex.status()
    # THEN they are cut, visibly
    validated("status", status)
    assert all(c["argv"][:3] == ["sh", "-c", "cat"] for c in status["commands"])
    assert all(c["argv"][3].endswith("...") for c in status["commands"])
    for child in children:
        go_on(child)


def test_the_tables_for_people_show_what_the_object_says(krex, stays):
    command = stays(*RUN, "--tenant", "somebody", "--", sys.executable, "-c", STAYS)
    assert command.stdout.readline() == "inside\n"
    done = krex("status")
    go_on(command)
    assert done.returncode == 0
    assert "cpu:0: gate closed" in done.stdout and "held by c-" in done.stdout
    assert "somebody" in done.stdout and Path(sys.executable).name in done.stdout
