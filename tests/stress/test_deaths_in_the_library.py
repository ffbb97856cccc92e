# SPDX-License-Identifier: Apache-2.0
"""The same for a process that dies, or stands still, at a step of its own: those of the library."""

from __future__ import annotations

import os
import signal
import time

import pytest
from support.scene import BUSY, ROUNDS, STOP_S, Party, Scene, kill, now_ns
from support.stop_points import HOLDER, NEWCOMER, SIBLING
from support.waiting import wait_for

pytestmark = pytest.mark.stress

HOW = ("killed", "stopped")


def is_reached(scene: Scene) -> bool:
    """Whether somebody is at the point before the holder has left its region."""
    wait_for(lambda: scene.points.is_reached() or scene.holder.has_said())
    return scene.points.is_reached()


def strike(pid: int, how: str, scene: Scene) -> None:
    """Who waits at a point dies there, or stands still while the holder enters another region."""
    reached = scene.points.wait()
    assert reached.pid == pid
    if how == "killed":
        kill([pid])
        reached.go_on()
        return
    os.kill(pid, signal.SIGSTOP)
    reached.go_on()
    if pid != scene.holder.pid:
        scene.enter("during")
    time.sleep(STOP_S)
    os.kill(pid, signal.SIGCONT)


def check_device(scene: Scene, over_ns: int) -> None:
    """Nothing is frozen, no gate is shut."""
    scene.await_thawed(over_ns)
    scene.await_open(over_ns)


def check_end(scene: Scene, over_ns: int) -> None:
    """All went on, what their records say is true, and nothing is left."""
    time.sleep(0.05)
    scene.check_kernels(over_ns)
    records = scene.holder.records()
    assert all(r["exclusive"] != bool(r["reasons"]) for r in records)
    scene.await_nothing_left()


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("point", SIBLING)
def test_a_sibling_is_lost(scene: Scene, point: str, round_: int) -> None:
    how = HOW[(SIBLING.index(point) + round_) % 2]
    scene.start(whose="victim")
    # GIVEN a sibling that is killed, or stopped, at the point
    scene.points.arm(point)
    scene.enter("before")
    while not is_reached(scene):  # whether it submits at that moment is chance
        scene.await_region()
        scene.enter("before")
    strike(scene.victim.pid, how, scene)
    over_ns = now_ns()
    # THEN the holder goes on, and so do the others; its next region has the device to itself.
    check_device(scene, over_ns)
    scene.await_region()
    if how == "stopped":
        scene.await_region()
    scene.check_exclusive_again()
    check_end(scene, over_ns)


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("point", HOLDER)
def test_a_holder_is_lost(scene: Scene, point: str, round_: int) -> None:
    how = HOW[(HOLDER.index(point) + round_) % 2]
    scene.start(whose="holder")
    # GIVEN a holder that is killed, or stopped, at the point
    scene.points.arm(point)
    scene.enter("region")
    strike(scene.holder.pid, how, scene)
    over_ns = now_ns()
    # THEN the siblings have the device back; the record says if it died,
    check_device(scene, over_ns)
    if how == "stopped":
        scene.await_region()
    [record] = scene.await_records(1)
    if how == "killed":
        assert not record["exclusive"]
        assert set(record["reasons"]) <= {"process_died", "left_while_waiting"}
    # and a stop of its own disturbs nothing.
    else:
        assert set(record["reasons"]) <= BUSY
    check_end(scene, over_ns)


def test_a_newcomer_is_lost(scene: Scene) -> None:
    scene.start(whose="nobody")
    # GIVEN a process that is killed when it has just registered
    scene.points.arm(*NEWCOMER)
    newcomer = Party(scene.krex, "sibling", "newcomer", KREX_TEST_STOP_AT=scene.points.action)
    reached = scene.points.wait()
    newcomer.pid = reached.pid
    # THEN regions go on beside it, before and after.
    scene.check_exclusive_again()
    kill([reached.pid])
    reached.go_on()
    check_device(scene, now_ns())
    scene.check_exclusive_again()
    newcomer.finish()
    check_end(scene, now_ns())
