# SPDX-License-Identifier: Apache-2.0
"""Commands are more than one process: whoever submits is known, waits its turn, and is recorded.

The holder is the process that entered the region and its descendants; other processes of its
command are siblings like any other (but for the freeze).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, ended, wait_for

PROGRAM = Path(__file__).with_name("process_program.py")

Line = dict[str, Any]


def run(krex: Krex, how: str, *words: str, **env: str) -> tuple[dict[str, Line], list[Line]]:
    """Run such a command to its end: what its processes said, by role, and its records."""
    options = ("--report", str(krex.folder / "r.jsonl"), "--max-hold", "10")
    child = krex.python(PROGRAM, how, *words, options=options, **env)
    out, _ = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 0
    said = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {line["role"]: line for line in said}, krex.records("r.jsonl")


def named(records: list[Line], *names: str) -> list[Line]:
    """The records of these names, each of which there must be exactly one of."""
    found = [[r for r in records if r["name"] == name] for name in names]
    assert [len(f) for f in found] == [1] * len(names), [r["name"] for r in records]
    return [f[0] for f in found]


def assert_exclusive(records: list[Line]) -> None:
    assert [(r["name"], r["reasons"]) for r in records if not r["exclusive"]] == []


def strangers_inside(owner: Line, others: list[Line]) -> int:
    """How many kernels of other processes ran inside the regions of `owner`."""
    kernels = [k for other in others for k in other["kernels"]]
    return sum(
        start < region[1] and end > region[0]
        for region in owner["regions"]
        for start, end in kernels
    )


@pytest.mark.parametrize(("how", "role"), [("fork", "child"), ("fork-exec", "leaf")])
def test_a_child_s_region_keeps_its_busy_parent_out(krex: Krex, how: str, role: str) -> None:
    said, records = run(krex, how)
    parent, child = said["parent"], said[role]
    mine = named(records, f"{role}-0", f"{role}-1")
    assert_exclusive(mine + named(records, "parent"))
    assert {r["pid"] for r in mine} == {child["pid"]} != {parent["pid"]}
    # GIVEN a parent that did submit meanwhile
    assert sum(k[0] > child["regions"][0][1] for k in parent["kernels"]) > 0
    assert [r["siblings"]["processes"] for r in mine] == [1, 1]
    # THEN it was never inside
    assert strangers_inside(child, [parent]) == strangers_inside(parent, [child]) == 0


@pytest.mark.parametrize("how", ["mp-fork", "mp-spawn", "mp-forkserver"])
def test_the_processes_of_a_command_take_turns(krex: Krex, how: str) -> None:
    said, records = run(krex, how)
    first, second = said["worker-0"], said["worker-1"]
    mine = named(records, "worker-0-0", "worker-0-1", "worker-1-0", "worker-1-1")
    assert_exclusive(mine)
    assert len({r["hold_id"] for r in mine}) == 4
    assert strangers_inside(first, [second]) == strangers_inside(second, [first]) == 0


def test_a_process_that_becomes_another_program_registers_anew(krex: Krex) -> None:
    said, records = run(krex, "replaced", "leaf")
    assert_exclusive(named(records, "before", "leaf-0", "leaf-1"))
    assert {r["pid"] for r in records} == {said["leaf"]["pid"]}


def test_what_a_process_submitted_before_exec_holds_nobody_up(krex: Krex) -> None:
    # GIVEN a sibling that submitted work, called exec, and goes on submitting
    sibling = krex.python(PROGRAM, "replaced", "busy")
    assert sibling.stdout.readline() == "busy\n"
    child = krex.program("--report", str(krex.folder / "r.jsonl"), regions=2)
    out, _ = child.communicate(timeout=DEADLINE_S)
    records = krex.records("r.jsonl")
    assert_exclusive(records)
    assert [r["siblings"]["processes"] for r in records] == [1, 1]
    kernels = json.loads(sibling.communicate(timeout=DEADLINE_S)[0])
    assert strangers_inside(json.loads(out), [kernels]) == 0


def test_a_daemon_stays_part_of_its_command(krex: Krex) -> None:
    # GIVEN a command whose daemon goes on submitting when it has ended itself
    left = krex.start("run", "--", krex.python_path, str(PROGRAM), "daemon")
    assert left.wait(DEADLINE_S) == 0
    wait_for((krex.folder / "daemon.pid").exists)
    daemon = int(wait_for((krex.folder / "daemon.pid").read_text))
    [command] = krex.status()["commands"]
    # WHEN another command has a region
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=2)
    out, _ = holder.communicate(timeout=DEADLINE_S)
    (krex.folder / "daemon.stop").touch()
    # THEN the daemon was frozen for it, and none of its kernels ran inside
    records = krex.records("h.jsonl")
    assert_exclusive(records)
    assert [r["siblings"]["commands_frozen"] for r in records] == [1, 1]
    wait_for(lambda: ended(daemon))
    said = json.loads((krex.folder / "daemon.out").read_text())
    assert said["pid"] == daemon
    assert strangers_inside(json.loads(out), [said]) == 0
    # and with it, the command is forgotten.
    wait_for(lambda: krex.status()["commands"] == [])
    assert not Path(command["cgroup"]).exists()


def test_threads_share_a_hold(krex: Krex) -> None:
    # GIVEN two threads that leave their regions only together
    said, records = run(krex, "threads")
    mine = named(records, "thread-0", "thread-1")
    assert_exclusive(mine)
    assert mine[0]["hold_id"] == mine[1]["hold_id"]
    assert len(said["threads"]["regions"]) == 2


def test_threads_that_wait_together_are_served_together(krex: Krex) -> None:
    options = ("--report", str(krex.folder / "r.jsonl"), "--max-hold", "10")
    command = krex.python(PROGRAM, "threads-behind", options=options)
    # GIVEN two threads in the queue, of which neither leaves its region without the other
    wait_for(lambda: [len(d["queue"]) for d in krex.status()["devices"]] == [2])
    command.communicate("leave\n", timeout=DEADLINE_S)
    mine = named(krex.records("r.jsonl"), "thread-0", "thread-1")
    assert_exclusive(mine)
    assert mine[0]["hold_id"] == mine[1]["hold_id"]


def test_more_threads_than_marks_are_told_of(krex: Krex) -> None:
    said = krex("run", "--report", "r", "--", krex.python_path, str(PROGRAM), "crowd")
    assert said.returncode == 0
    records = krex.records("r")
    assert len(records) == 8
    assert_exclusive(records)
    assert said.stderr.count("threads are in a region at once") == 1


def test_a_thread_that_ends_inside_leaves_its_region(krex: Krex) -> None:
    child = krex.python(
        PROGRAM, "thread-ends-inside", options=("--report", str(krex.folder / "r.jsonl"))
    )
    assert child.stdout.readline() == "ended\n"
    # GIVEN a process that goes on, THEN its region is over and others get theirs
    assert krex.program(regions=1).wait(DEADLINE_S) == 0
    assert child.poll() is None
    child.communicate("", timeout=DEADLINE_S)
    [record] = krex.records("r.jsonl")
    assert record["name"] == "forgotten" and record["exclusive"] and record["hold_s"] < 5


def test_children_share_the_region_that_they_are_born_into(krex: Krex) -> None:
    # GIVEN a parent that stays in its region until its children's kernels are done
    said, records = run(krex, "child-inside")
    [outer] = named(records, "outer")
    inner = named(records, "leaf-0", "leaf-1")
    # THEN the one that was there before, and the late one, passed the gate
    assert_exclusive([outer, *inner])
    assert {r["hold_id"] for r in inner} == {outer["hold_id"]}
    assert said["early"]["kernels"] and said["leaf"]["kernels"]


def test_a_child_forked_inside_a_region_has_regions_of_its_own(krex: Krex) -> None:
    said, records = run(krex, "fork-inside")
    [outer] = named(records, "outer")
    mine = named(records, "child-0", "child-1")
    assert_exclusive([outer, *mine])
    assert {r["pid"] for r in mine} == {said["child"]["pid"]}
    # The child's unwinding did not end its parent's.
    assert outer["hold_s"] >= 0.05


def test_a_program_that_closes_our_connection_loses_nothing_but_protection(krex: Krex) -> None:
    words = [krex.python_path, str(PROGRAM), "closes-everything"]
    result = krex("run", "--report", "r", "--", *words)
    # THEN nothing was written to, or closed of, what has the connection's number now
    assert (result.returncode, result.stdout) == (0, "")
    # the process says that it is unprotected, once; its child registers anew.
    assert result.stderr.count("is lost: this process runs unprotected") == 1
    assert [r["name"] for r in krex.records("r")] == ["registers"] * 3


def test_a_nested_run_is_recorded_by_the_outer_one(krex: Krex) -> None:
    said, records = run(krex, "nested")
    mine = named(records, "outer", "leaf-0", "leaf-1")
    assert_exclusive(mine)
    assert len({r["command"] for r in mine}) == 1
    assert said["leaf"]["pid"] != mine[0]["pid"]


def test_a_nested_report_takes_nothing_from_the_outer_one(krex: Krex) -> None:
    inner = krex.folder / "inner.jsonl"
    _, records = run(krex, "nested", "--report", str(inner))
    assert_exclusive(named(records, "outer", "leaf-0", "leaf-1"))
    assert_exclusive(named(krex.records("inner.jsonl"), "leaf-0", "leaf-1"))


def test_a_krex_report_in_the_environment_takes_nothing_from_the_report(krex: Krex) -> None:
    inherited = krex.folder / "inherited.jsonl"
    _, records = run(krex, "leaf", KREX_REPORT=str(inherited))
    assert_exclusive(named(records, "leaf-0", "leaf-1"))


def test_an_enclosing_require_counts_nested_regions(krex: Krex) -> None:
    words = ["--exclusive", "none", "--require", "--", krex.python_path, str(PROGRAM), "nested"]
    result = krex("run", *words, "--report", "inner.jsonl")
    assert result.returncode == 125 and "3 of 3 regions not exclusive" in result.stderr


def test_a_pipe_ends_with_its_command(krex: Krex) -> None:
    # GIVEN a command with a region, in a process that forked
    began = time.monotonic()
    words = [*krex.base, "run", "--", krex.python_path, str(PROGRAM), "fork"]
    shell = krex.popen("sh", "-c", '"$@" | cat', "sh", *words)
    out, _ = shell.communicate(timeout=DEADLINE_S)
    assert shell.returncode == 0 and out.count("\n") == 2
    assert time.monotonic() - began < DEADLINE_S
