# SPDX-License-Identifier: Apache-2.0
"""A region beside a command that is hard to drain: it waits for what will end, and goes on, not
exclusive, without what can't; the other one computes what it computes alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.beside import Beside, alone
from support.command_line import Krex
from support.sim_device import FOLDER
from support.waiting import wait_for

OK, ILLEGAL_ADDRESS, UNKNOWN = 0, 700, 999


@pytest.fixture
def beside(cli: Krex) -> Iterator[Beside]:
    scene = Beside(cli)
    yield scene
    scene.close()


@pytest.fixture
def bare(cli: Krex) -> dict[str, str]:
    """The environment of a program that runs without KREX."""
    return {**cli.env, "LD_LIBRARY_PATH": str(FOLDER)}


@pytest.mark.parametrize(
    "scenario",
    [
        "loads_behind_a_long_kernel",
        "queue_is_full_for_long",
        "callback_takes_its_time",
        "kernel_waits_for_a_free_thread",
        "stream_waits_for_a_free_thread",
        "capture_is_open_for_short",
        "work_in_contexts_of_each_kind",
        "work_in_default_streams_of_threads",
        "kernel_fails_meanwhile",
    ],
)
def test_a_region_waits_for_what_will_end(
    beside: Beside, bare: dict[str, str], scenario: str
) -> None:
    # GIVEN a command in that state
    sibling, holder = beside.sibling(scenario), beside.holder()
    # WHEN another one asks for a region, and the first one goes on meanwhile
    beside.until("heavy-closed", holder)
    sibling.tell()
    # THEN the region is exclusive
    record = holder.end()
    assert (record["exclusive"], record["reasons"]) == (True, [])
    # AND the first one computes, and is told, what it is alone
    found = sibling.finds()
    # AND the device says the same of the region
    beside.check()
    assert found == alone(scenario, beside.krex.folder, bare)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("loads_behind_a_kernel_that_waits_for_the_host", "submission_in_flight"),
        ("queue_is_full_until_the_host_does_something", "submission_in_flight"),
        ("callback_waits_for_a_thread_at_the_gate", "sibling_not_drained"),
        ("callback_needs_the_lock_that_a_thread_at_the_gate_has", "sibling_not_drained"),
        ("kernel_waits_for_a_thread_at_the_gate", "sibling_not_drained"),
        ("stream_waits_for_a_thread_at_the_gate", "sibling_not_drained"),
        ("capture_is_open_for_long", "capture_open"),
    ],
)
def test_a_region_goes_on_without_what_cannot_end(
    beside: Beside, bare: dict[str, str], scenario: str, reason: str
) -> None:
    # GIVEN a command in that state
    sibling, holder = beside.sibling(scenario), beside.holder()
    # WHEN another one asks for a region, and the first one needs the gate to get out of its state
    beside.until("heavy-closed" if reason == "capture_open" else "gate-closed", holder)
    sibling.tell()
    # THEN the region begins all the same, and says why it is not exclusive
    record = holder.end()
    assert (record["exclusive"], record["reasons"]) == (False, [reason])
    # AND with the gate open the first one gets out of it, and computes what it does alone
    sibling.await_ready()
    sibling.tell()
    found = sibling.finds()
    # AND the next region is exclusive
    holder.begin()
    assert holder.end()["exclusive"]
    beside.check()
    assert found == alone(scenario, beside.krex.folder, bare)


def test_code_is_not_loaded_while_another_has_the_device(beside: Beside) -> None:
    # GIVEN somebody who acquires a region WHEN a sibling launches a kernel for the first time
    sibling, holder = beside.sibling("first_launch_at_a_shut_gate"), beside.holder()
    with beside.at("gate-closed", holder):
        sibling.tell()
        sibling.await_ready()
    record = holder.end()
    # THEN it is loaded, and runs, when the region is over
    sibling.tell()
    assert sibling.finds() == [OK, OK]
    assert record["exclusive"]
    assert beside.check()["heavy_beside"] == 0


def test_a_region_waits_until_what_a_killed_command_left_is_off_the_device(
    beside: Beside,
) -> None:
    # GIVEN a command with a kernel of 6 s on the device
    sibling, holder = beside.sibling("long_kernel"), beside.holder()
    # WHEN its program is killed while somebody waits for the device
    with beside.at("drain-asked", holder):
        beside.kill_program_of(sibling)
    # THEN the region begins when nothing of it runs any more, which takes a while after a death
    record = holder.end()
    assert (record["exclusive"], record["reasons"]) == (True, [])
    beside.check()
    assert beside.ends() == ["ended"]


def test_a_process_with_a_context_on_a_second_device_is_not_certain(beside: Beside) -> None:
    # GIVEN a program that shows itself both devices
    program, holder = beside.sibling("contexts_on_two_devices"), beside.holder(device=1)
    wait_for(lambda: beside.records(0))
    # WHEN it makes a context on the second one
    program.tell()
    program.await_ready()
    # THEN its region before that is exclusive, and none after that
    verdicts = wait_for(lambda: len(r := beside.records(0)) == 2 and r)
    assert [v["reasons"] for v in verdicts] == [[], ["context_on_other_device"]]
    # AND as long as it is there, no region on the second device is
    holder.begin()
    assert holder.end()["reasons"] == ["unregistered_process"]
    program.tell()
    assert program.finds() == [OK]
    holder.begin()
    assert holder.end()["exclusive"]
    beside.check()


# ---------------------------------------------------------------- what goes wrong on the device


def test_a_kernel_that_fails_in_a_region_is_nobody_else_s_affair(beside: Beside) -> None:
    # GIVEN a command whose kernel fails inside its region
    holder = beside.holder()
    program = beside.sibling("kernel_fails_in_its_own_region")
    program.tell()
    # THEN it is told so by the driver, and its region was exclusive
    assert program.finds() == [ILLEGAL_ADDRESS, ILLEGAL_ADDRESS]
    [record] = beside.records(1)
    assert (record["exclusive"], record["reasons"]) == (True, [])
    assert not record.get("work_at_end")
    # AND others go on
    holder.begin()
    assert holder.end()["exclusive"]
    beside.check()


@pytest.mark.slow
def test_beside_a_kernel_that_never_ends_no_region_is_exclusive_until_its_process_dies(
    beside: Beside,
) -> None:
    sibling, holder = beside.sibling("kernel_never_ends"), beside.holder()
    # GIVEN a kernel that never ends WHEN somebody else marks regions
    for _ in range(2):
        holder.begin()
        # THEN each begins after the deadline, and says why it is not exclusive
        record = holder.end()
        assert (record["exclusive"], record["reasons"]) == (False, ["sibling_not_drained"])
    # AND when the kernel's process has been killed, the next one is exclusive
    beside.kill_program_of(sibling)
    holder.begin()
    assert holder.end()["exclusive"]
    beside.check()
    assert beside.ends() == ["ended"]


@pytest.mark.slow
def test_a_region_ends_although_its_kernel_does_not(beside: Beside) -> None:
    # GIVEN a command that leaves a kernel behind in its region, which never ends
    holder = beside.holder()
    program = beside.sibling("kernel_never_ends_in_its_own_region")
    # THEN its record says so, and that it had been alone
    [record] = wait_for(lambda: beside.records(1))
    assert (record["exclusive"], record["work_at_end"]) == (True, True)
    # AND the others' records say that they are not, until its process is dead
    holder.begin()
    assert holder.end()["reasons"] == ["sibling_not_drained"]
    beside.kill_program_of(program)
    holder.begin()
    assert holder.end()["exclusive"]
    beside.check()


@pytest.mark.slow
def test_a_device_that_is_lost_keeps_nobody_waiting_for_long(beside: Beside) -> None:
    # GIVEN two commands, of which one loses the device for all WHEN the other asks for a region
    sibling, holder = beside.sibling("device_is_lost_meanwhile"), beside.holder()
    holder.begin()
    holder.answers()
    # THEN the driver says to each what it says without KREX
    sibling.tell()
    assert sibling.finds() == [UNKNOWN, UNKNOWN]
    holder.does("submit")
    holder.tell("wait")
    assert holder.hear().split()[0] == str(UNKNOWN)
    # AND the region has begun and ends: not exclusive, for an unknown error says nothing of work
    holder.does("leave")
    record = holder.record()
    assert (record["exclusive"], record["reasons"]) == (False, ["sibling_not_drained"])
    assert not any(device["hold"] for device in beside.krex.status()["devices"])


def test_a_region_in_which_the_device_is_lost_ends(beside: Beside) -> None:
    program = beside.sibling("device_is_lost_in_its_own_region")
    program.tell()
    assert program.finds() == [UNKNOWN, UNKNOWN]
    [record] = beside.records(0)
    assert record["exclusive"] and record["released_ns"]
    assert not any(device["hold"] for device in beside.krex.status()["devices"])
