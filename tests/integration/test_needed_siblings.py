# SPDX-License-Identifier: Apache-2.0
"""A holder that waits for a sibling gets what it waits for, and the record says so."""

from __future__ import annotations

import os
import pty
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for

PROGRAM = Path(__file__).with_name("waits_program.py")
# Without help a holder would wait until this limit gives its region up.
HOLDER = ("--max-hold", str(DEADLINE_S), "--report", "h.jsonl")
FLOOD_BYTES = 1 << 20


def words(krex: Krex, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    """The words of `krex` that run the program."""
    return ["run", *options, "--", krex.python_path, str(PROGRAM), *arguments]


def start(krex: Krex, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return krex.start(*words(krex, *arguments, options=options), stdin=subprocess.PIPE)


def say(child: subprocess.Popen[str]) -> None:
    child.stdin.write("\n")
    child.stdin.flush()


def the_record(krex: Krex, name: str = "h.jsonl") -> dict[str, Any]:
    """The only one; it may have been taken for disturbed, for the right reason."""
    [record] = krex.records(name)
    assert record["exclusive"] or record["reasons"] == ["sibling_ran"]
    return record


# ---------------------------------------------------------------- file locks


def contest(krex: Krex, kind: str, then: str = "sleeps") -> dict[str, Any]:
    """Let the holder want a lock that a frozen sibling has; its record."""
    path = str(krex.folder / "lock")
    sibling = start(krex, "holds", kind, path, then)
    assert sibling.stdout.readline() == "locked\n"
    holder = start(krex, "wants", kind, path, options=HOLDER)
    assert holder.stdout.readline() == "inside\n"
    # WHEN the sibling could give it up, if it ran
    say(sibling)
    # THEN the holder gets it before its limit is over.
    assert holder.stdout.readline() == "got it\n"
    assert krex.status()["devices"][0]["gate"] == "closed"
    holder.communicate("\n", timeout=DEADLINE_S)
    sibling.communicate("\n", timeout=DEADLINE_S)
    assert (holder.returncode, sibling.returncode) == (0, 0)
    return the_record(krex)


@pytest.mark.parametrize("kind", ["flock", "posix", "ofd"])
def test_a_frozen_sibling_gives_up_the_lock_that_the_holder_waits_for(krex: Krex, kind: str):
    record = contest(krex, kind)
    siblings = record["siblings"]
    assert (siblings["commands_frozen"], siblings["commands_thawed_for_a_lock"]) == (1, 1)
    assert siblings["commands_sharing_a_pipe"] == 0
    assert record["hold_s"] < DEADLINE_S


def test_a_thawed_sibling_that_computes_is_not_overlooked(krex: Krex):
    # On a CPU device the cores are the device.
    record = contest(krex, "flock", "computes")
    assert record["siblings"]["commands_thawed_for_a_lock"] == 1
    assert record["reasons"] == ["sibling_ran"]


def test_a_frozen_sibling_that_waits_for_the_same_lock_is_not_in_the_way(krex: Krex):
    # GIVEN a sibling that has the lock, and one that waits for it; both are frozen
    path = str(krex.folder / "lock")
    first = start(krex, "holds", "flock", path)
    assert first.stdout.readline() == "locked\n"
    second = start(krex, "holds", "flock", path)
    wait_for(lambda: "-> FLOCK" in Path("/proc/locks").read_text())
    holder = start(krex, "wants", "flock", path, options=HOLDER)
    assert holder.stdout.readline() == "inside\n"
    say(first)
    say(second)
    # THEN the holder gets it before the other one, which stays frozen
    assert holder.stdout.readline() == "got it\n"
    for child in (holder, first, second):
        child.communicate("\n", timeout=DEADLINE_S)
    siblings = the_record(krex)["siblings"]
    assert (siblings["commands_frozen"], siblings["commands_thawed_for_a_lock"]) == (2, 1)


@pytest.mark.parametrize("how", ["opens", "keeps"])
def test_a_lock_that_the_holder_tries_for_now_and_then_is_given_up(krex: Krex, how: str):
    path = str(krex.folder / "lock")
    sibling = start(krex, "holds", "flock", path)
    assert sibling.stdout.readline() == "locked\n"
    holder = start(krex, "tries", how, path, options=HOLDER)
    assert holder.stdout.readline() == "inside\n"
    say(sibling)
    assert holder.wait(DEADLINE_S) == 0
    sibling.communicate("\n", timeout=DEADLINE_S)
    assert the_record(krex)["siblings"]["commands_thawed_for_a_lock"] == 1


def test_a_lock_kept_around_a_whole_command_is_given_up_at_its_end(krex: Krex):
    # GIVEN `flock FILE krex run ...`: the lock's owner is not in the command that is frozen
    path = str(krex.folder / "lock")
    run = [*krex.base, "run", "--", "sh", "-c", "echo up; read line"]
    locked = krex.popen("flock", "--close", path, *run)
    assert locked.stdout.readline() == "up\n"
    holder = start(krex, "wants", "flock", path, options=HOLDER)
    assert holder.stdout.readline() == "inside\n"
    locked.communicate("\n", timeout=DEADLINE_S)
    assert holder.stdout.readline() == "got it\n"
    holder.communicate("\n", timeout=DEADLINE_S)
    assert the_record(krex)["siblings"]["commands_thawed_for_a_lock"] == 1


def test_a_sibling_with_a_lock_that_nobody_waits_for_stays_frozen(krex: Krex):
    path = str(krex.folder / "lock")
    sibling = start(krex, "holds", "flock", path)
    assert sibling.stdout.readline() == "locked\n"
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    say(sibling)
    time.sleep(0.5)  # several looks
    assert sum(c["frozen"] for c in krex.status()["commands"]) == 1
    holder.communicate("\n", timeout=DEADLINE_S)
    sibling.communicate("\n", timeout=DEADLINE_S)
    [record] = krex.records("h.jsonl")
    assert record["exclusive"] and record["siblings"]["commands_thawed_for_a_lock"] == 0


# ---------------------------------------------------------------- pipes


def shell(krex: Krex, script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in which `run` is `krex run`, and `program` the program of these tests."""
    functions = f'run() {{ {shlex.join([*krex.base, "run"])} "$@"; }}\n'
    functions += f'program="{krex.python_path} {PROGRAM}"\nH="{shlex.join(HOLDER)}"\n'
    child = subprocess.Popen(
        ["sh", "-c", functions + script], env=krex.env, cwd=krex.folder, text=True, **options
    )
    krex.started.append(child)
    out, _ = child.communicate(timeout=2 * DEADLINE_S)
    return subprocess.CompletedProcess(script, child.returncode, out)


def test_the_reader_of_the_holder_s_output_is_not_frozen(krex: Krex):
    done = shell(krex, "run $H -- $program floods | run -- cat | wc -c", stdout=subprocess.PIPE)
    # THEN nothing was lost, nor waited for until the limit
    assert int(done.stdout) == FLOOD_BYTES
    siblings = the_record(krex)["siblings"]
    assert (siblings["commands_frozen"], siblings["commands_sharing_a_pipe"]) == (0, 1)


def test_the_writer_of_the_holder_s_input_is_not_frozen(krex: Krex):
    script = f"run -- sh -c 'sleep 2; head -c {FLOOD_BYTES} /dev/zero' | run $H -- $program drinks"
    assert shell(krex, script).returncode == 0
    siblings = the_record(krex)["siblings"]
    assert (siblings["commands_frozen"], siblings["commands_sharing_a_pipe"]) == (0, 1)


def test_a_socket_pair_is_a_pipe(krex: Krex):
    # As some shells make them.
    mine, theirs = socket.socketpair()
    with mine, theirs:
        reader = krex.start("run", "--", "sh", "-c", "echo up >&2; exec cat", stdin=theirs)
        assert reader.stderr.readline() == "up\n"
        holder = krex.start(*words(krex, "floods", options=HOLDER), stdout=mine)
    out, _ = reader.communicate(timeout=DEADLINE_S)
    assert holder.wait(DEADLINE_S) == 0 and len(out) == FLOOD_BYTES
    assert the_record(krex)["siblings"]["commands_sharing_a_pipe"] == 1


def test_a_pipe_deep_inside_the_commands_is_found_when_the_holder_stops(krex: Krex):
    # GIVEN a named pipe that neither of the commands had from its start
    os.mkfifo(krex.folder / "fifo")
    script = """run -- sh -c "cat < fifo | wc -c" > count &
        run $H -- sh -c "$program floods > fifo"; wait"""
    assert shell(krex, script).returncode == 0
    assert int((krex.folder / "count").read_text()) == FLOOD_BYTES
    siblings = the_record(krex)["siblings"]
    assert siblings["commands_frozen"] + siblings["commands_sharing_a_pipe"] >= 1
    assert siblings["commands_sharing_a_pipe"] == 1


@pytest.fixture(params=["terminal", "collector", "/dev/null", "log"])
def shared(request: pytest.FixtureRequest, place: Path) -> Iterator[int]:
    """What the streams of commands are usually connected to that have nothing to do with each
    other: both write, nobody of them reads.
    """
    if request.param == "terminal":
        other, ours = pty.openpty()
    elif request.param == "collector":
        other, ours = os.pipe()
    else:
        other, ours = -1, os.open(place / request.param, os.O_RDWR | os.O_CREAT)
    yield ours
    for fd in {other, ours} - {-1}:
        os.close(fd)


def test_commands_that_share_a_stream_otherwise_are_frozen(krex: Krex, shared: int):
    streams = {"stdin": shared, "stdout": shared, "stderr": shared}
    sibling = krex.start("run", "--", "sh", "-c", "touch up; exec sleep 60", **streams)
    wait_for((krex.folder / "up").exists)
    holder = krex.start(*words(krex, "quick", options=HOLDER), **streams)
    assert holder.wait(DEADLINE_S) == 0
    assert sibling.poll() is None
    [record] = krex.records("h.jsonl")
    assert record["exclusive"]
    siblings = record["siblings"]
    assert (siblings["commands_frozen"], siblings["commands_sharing_a_pipe"]) == (1, 0)
