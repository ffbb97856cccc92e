# SPDX-License-Identifier: Apache-2.0
"""G1, G3, G4, G6 when a party dies, or stands still, at any step of the handshake and the release.

A round: the controller waits at a named point, somebody is killed, or stopped for STOP_S, and it
goes on. Each point has its own share of all (victim, how) pairs in the default run; `make stress`
goes through all of them at every point (KREX_TEST_ROUNDS).
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from support.scene import CPUS, ROUNDS, STOP_S, Scene, kill, now_ns
from support.stop_points import CONTROLLER as POINTS
from support.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.stress

LEFT = POINTS.index("leaving")

KILL, STOP = "killed", "stopped"
CASES = [
    ("controller", STOP),
    ("sibling-run+controller", KILL),
    ("holder", KILL),
    ("sibling-run+controller", STOP),
    ("sibling", KILL),
    ("controller", KILL),
    ("sibling", STOP),
    ("holder-run", KILL),
    ("sibling-run", STOP),
    ("holder", STOP),
    ("sibling-run", KILL),
    ("holder-run", STOP),
    ("holder-run+controller", KILL),
]


def strike(scene: Scene, who: str, how: str, point: str) -> int:
    """Bring the holder's region to the point, and do it; when it was over (ns)."""
    scene.points.arm(point)
    # A region that is under way goes on while the siblings are let loose.
    scene.enter(point, STOP_S if point == "granted" and how == STOP else 0)
    reached = scene.points.wait()
    assert reached.pid == scene.controller
    if how == KILL:
        kill(scene.pids(who))
        reached.go_on()
        return now_ns()
    for pid in scene.pids(who):
        os.kill(pid, signal.SIGSTOP)
    reached.go_on()
    time.sleep(STOP_S)
    for pid in scene.pids(who):
        os.kill(pid, signal.SIGCONT)
    return now_ns()


def recover(scene: Scene, who: str, how: str) -> None:
    """Where controller and a `krex run` died together, the next `krex` puts it right."""
    if how == KILL and "+" in who:
        result = scene.krex("thaw", "--all")
        assert result.returncode == 0, result.stderr


def check_device(scene: Scene, who: str, how: str, over_ns: int) -> None:
    """Nothing is frozen, or pinned, and no gate is shut. With nobody to ask, kernels tell that."""
    scene.await_thawed(over_ns)
    scene.await_unpinned(over_ns)
    if how == STOP or "controller" not in who:
        scene.await_open(over_ns)


def check_record(scene: Scene, who: str, how: str, point: str) -> None:
    """It exists, and is honest."""
    if who == "holder-run+controller" and how == KILL:
        return  # nobody is left to write it
    [record] = [r for r in scene.await_records(1) if r["name"] == point]
    assert record["exclusive"] != bool(record["reasons"])
    disturbed = "controller" in who or (who == "holder" and how == KILL)
    if disturbed and POINTS.index(point) < LEFT:
        assert not record["exclusive"]
    if disturbed and not record["exclusive"]:
        known = {
            ("holder", KILL): {"process_died", "left_while_waiting"},
            ("controller", STOP): {"lease_lost", "began_without_grant", "sibling_thawed"},
            ("controller", KILL): {"controller_lost"},
        }
        assert set(record["reasons"]) <= known[who.rpartition("+")[2], how], record


def check_nothing_left(scene: Scene, who: str, how: str) -> None:
    if how == KILL and "controller" in who:
        assert scene.krex("thaw", "--all").returncode == 0
    scene.await_nothing_left()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.timeout(180)
def test_a_party_is_lost(scene: Scene, point: str, round_: int) -> None:
    who, how = CASES[(POINTS.index(point) + round_) % len(CASES)]
    if point == "pinned" and len(CPUS) < 2:
        pytest.skip("one CPU: none can be reserved")
    scene.start(sliced=point == "pinned")
    # GIVEN a region that is at the point WHEN somebody is killed there, or stands still for a while
    over_ns = strike(scene, who, how, point)
    recover(scene, who, how)
    # THEN the device is free again, the record says what happened,
    check_device(scene, who, how, over_ns)
    check_record(scene, who, how, point)
    time.sleep(0.05)
    # the siblings go on, those that live; and in the end nothing is left.
    scene.check_kernels(over_ns)
    check_nothing_left(scene, who, how)


@pytest.mark.timeout(180)
def test_a_controller_that_stood_still_grants_nothing(scene: Scene) -> None:
    scene.start()
    # GIVEN a controller that stands still, longer than its lease, in one region after the other
    points = [point for point in POINTS if point != "pinned"]
    points = points if ROUNDS > 1 else points[::2]
    for point in points:
        over_ns = strike(scene, "controller", STOP, point)
        # THEN the holder went on without it, and as it goes on it opens and thaws everything.
        scene.await_region()
        check_device(scene, "controller", STOP, over_ns)
    records = {r["name"]: r for r in scene.await_records(len(points))}
    before = [records[point] for point in points if POINTS.index(point) < LEFT]
    assert [r for r in before if r["exclusive"]] == []
    # A region that comes afterwards is as if nothing had been.
    scene.check_exclusive_again()
    scene.check_kernels(now_ns())
    check_nothing_left(scene, "", STOP)


@pytest.mark.timeout(180)
def test_who_runs_on_without_a_controller_is_not_overlooked_by_the_next(scene: Scene) -> None:
    report = scene.krex.folder / "next.jsonl"
    program = str(Path(__file__).parents[1] / "integration" / "region_program.py")
    words = ("run", "--report", str(report), "--", scene.krex.python_path, program, "1")
    scene.start()
    # GIVEN commands whose controller died, and which go on using the device
    kill(scene.pids("controller"))
    # WHEN the next one starts another, THEN its region is not exclusive, for those are not gated,
    scene.krex.serve.wait()
    assert scene.krex(*words).returncode == 0
    [record] = scene.krex.records("next.jsonl")
    assert (record["exclusive"], record["reasons"]) == (False, ["unregistered_process"])
    # until they have ended.
    scene.finish()
    assert scene.krex(*words).returncode == 0
    assert scene.krex.records("next.jsonl")[1]["exclusive"]
    wait_for(lambda: not any(group.exists() for group in scene.groups.values()))
    os.kill(scene.krex.controller_pid(), signal.SIGTERM)
    wait_for(lambda: not scene.socket.exists())
    check_nothing_left(scene, "controller", KILL)


def test_nobody_waits_for_the_siblings_of_a_dead_holder(scene: Scene) -> None:
    scene.start()
    # GIVEN a sibling with work to be drained, which stands still and will not say that it is done
    scene.points.arm("in-flight-zero")
    scene.enter("region")
    reached = scene.points.wait()
    os.kill(scene.victim.pid, signal.SIGSTOP)
    kill([scene.holder.pid])
    reached.go_on()
    # WHEN the holder has died THEN the gate does not stay shut until they are drained (5 s).
    over_ns = now_ns()
    scene.await_open(over_ns)
    os.kill(scene.victim.pid, signal.SIGCONT)
    over_ns = now_ns()
    time.sleep(0.05)
    scene.check_kernels(over_ns)
    check_nothing_left(scene, "", STOP)


def test_a_sibling_that_only_computes_is_noticed_too(scene: Scene) -> None:
    krex = scene.krex
    krex.start_controller()
    # GIVEN a region, beside a command that uses the processor and never comes to the gate
    sibling = krex.popen(*krex.base, "run", "-q", "--", "sh", "-c", "echo up; read line")
    assert sibling.stdout.readline() == "up\n"
    program = str(Path(__file__).parents[1] / "integration" / "region_program.py")
    options = ("--report", str(krex.folder / "r.jsonl"), "-q")
    run = (*krex.base, "run", *options, "--", krex.python_path, program, "1", "pause")
    holder = krex.popen(*run)
    assert holder.stdout.readline() == "inside\n"
    [group] = [Path(c["cgroup"]) for c in krex.status()["commands"] if c["frozen"]]
    # WHEN the controller stands still, and its `krex run` thaws it
    krex.serve.send_signal(signal.SIGSTOP)
    wait_for(lambda: (group / "cgroup.freeze").read_text() == "0\n")
    krex.serve.send_signal(signal.SIGCONT)
    # THEN the region is over as soon as the controller sees that, and was not exclusive.
    [record] = wait_for(lambda: (krex.folder / "r.jsonl").exists() and krex.records("r.jsonl"))
    assert not record["exclusive"] and "lease_lost" in record["reasons"]
    [device] = krex.status()["devices"]
    assert (device["gate"], device["hold"]) == ("open", None)
    holder.communicate("leave\n", timeout=DEADLINE_S)
    sibling.communicate("\n", timeout=DEADLINE_S)
