# SPDX-License-Identifier: Apache-2.0
"""Slots: who is let in, in which order, what those who wait are told, and what they may expect."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from krex.controller.admission import Admission
from krex.controller.forecast import REMEMBERED, UNKNOWN, Durations, Occupant, play
from krex.controller.standing import Standing, Teller


class Device:
    """An admission, with a record of whom it let in and what it told those who wait."""

    def __init__(self, slots: int) -> None:
        self.now = 0.0
        self.admission: Any = Admission("cpu:0", slots, lambda: self.now)
        self.entered: list[str] = []
        self.alone: dict[str, bool] = {}
        self.told: dict[str, Standing] = {}
        self.applicants: dict[str, Any] = {}

    def apply(self, *commands: str, alone: bool = False, memory: int = 0) -> None:
        for command in commands:

            def let_in(is_alone: bool, command: str = command) -> None:
                assert command not in self.alone, "let in twice"
                self.entered.append(command)
                self.alone[command] = is_alone

            def tell(standing: Standing, command: str = command) -> None:
                self.told[command] = standing

            self.applicants[command] = self.admission.apply(command, alone, let_in, tell, memory)

    def run(self, command: str, seconds: float) -> None:
        """Let a command that is inside take so long."""
        self.admission.started(command)
        self.now += seconds
        self.admission.leave(command)

    @property
    def waiting(self) -> list[str]:
        return [applicant.command for applicant in self.admission.waiting]

    def expected(self) -> list[float | None]:
        return [standing.expected_wait_s for _, standing in self.admission.standings()]


def test_a_command_waits_for_memory_and_nobody_overtakes_it():
    # GIVEN a device with room for ten, of which six are reserved
    device = Device(4)
    device.admission.memory = 10
    device.apply("a", memory=6)
    # WHEN one wants five THEN it waits, and one behind it that wants none too
    device.apply("b", memory=5)
    device.apply("c")
    assert device.entered == ["a"] and device.waiting == ["b", "c"]
    assert "memory" in device.told["b"].why
    assert device.expected() == [None, None]
    # AND both are let in when it is there
    device.admission.leave("a")
    assert device.entered == ["a", "b", "c"]
    assert (device.admission.reserved("b"), device.admission.reserved("c")) == (5, 0)


def test_where_nobody_knows_how_much_memory_there_is_all_find_room():
    device = Device(2)
    device.apply("a", memory=1 << 60)
    assert device.entered == ["a"] and device.admission.has_room(1)


# ---------------------------------------------------------------- who is let in


def test_so_many_run_as_there_are_slots_and_the_others_follow_in_order():
    device = Device(2)
    device.apply("a", "b", "c", "d")
    assert device.entered == ["a", "b"] and device.waiting == ["c", "d"]
    # WHEN one ends, THEN the first of the queue gets its slot
    device.admission.leave("b")
    assert device.entered == ["a", "b", "c"] and device.admission.used == 2
    device.admission.leave("a")
    device.admission.leave("c")
    assert device.entered == ["a", "b", "c", "d"] and device.admission.used == 1


def test_who_is_to_be_alone_waits_for_all_and_is_overtaken_by_none():
    device = Device(3)
    device.apply("a", "b")
    device.apply("lone", alone=True)
    device.apply("c")
    # GIVEN a free slot, THEN nobody takes it before the lone command
    assert device.entered == ["a", "b"]
    device.admission.leave("a")
    assert device.entered == ["a", "b"]
    device.admission.leave("b")
    assert device.entered == ["a", "b", "lone"] and device.alone["lone"]
    # AND those behind it come after it
    device.apply("d")
    assert device.waiting == ["c", "d"]
    device.admission.leave("lone")
    assert device.entered == ["a", "b", "lone", "c", "d"] and not device.alone["c"]


def test_two_lone_commands_take_turns():
    device = Device(16)
    device.apply("one", "two", alone=True)
    assert device.entered == ["one"]
    device.admission.leave("one")
    assert device.entered == ["one", "two"]


def test_who_gives_up_being_alone_keeps_its_place():
    device = Device(2)
    device.apply("a")
    device.apply("lone", alone=True)
    device.apply("c")
    device.admission.give_up(device.applicants["lone"])
    assert device.entered == ["a", "lone"] and not device.alone["lone"]
    # Once it is in, there is nothing to give up any more.
    device.admission.leave("a")
    device.admission.leave("lone")
    device.apply("other", alone=True)
    assert device.entered == ["a", "lone", "c"]
    device.admission.leave("c")
    device.admission.give_up(device.applicants["other"])
    device.apply("d")
    assert device.alone["other"] and device.waiting == ["d"]


def test_who_leaves_the_queue_lets_those_behind_move_up():
    device = Device(1)
    device.apply("a", "b", "c")
    device.admission.leave("b")
    assert device.told["c"].place == 1 and device.told["c"].of == 1
    # A lone command that is killed holds nobody up any more.
    device = Device(2)
    device.apply("a")
    device.apply("lone", alone=True)
    device.apply("c")
    device.admission.leave("lone")
    assert device.entered == ["a", "c"]


def test_a_preloaded_tree_takes_a_slot_whether_or_not_one_is_free():
    device = Device(1)
    device.admission.take("tree")
    device.apply("a")
    assert device.entered == [] and device.admission.used == 1
    device.admission.take("another tree")
    assert device.admission.used == 2
    # Only when they are fewer than the slots is somebody let in.
    device.admission.leave("tree")
    assert device.entered == []
    device.admission.leave("another tree")
    assert device.entered == ["a"]


def test_a_lone_command_and_a_preloaded_tree_do_not_wait_for_each_other():
    device = Device(2)
    device.admission.take("tree")
    device.apply("lone", alone=True)
    assert device.entered == ["lone"]
    device.apply("a")
    device.admission.leave("tree")
    assert device.entered == ["lone"]


# ---------------------------------------------------------------- whatever happens


class Walk:
    """A device to which everything happens, in any order."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.device = Device(self.chance.choice([1, 2, 3, 16]))
        self.killed: set[str] = set()
        self.trees: set[str] = set()

    @property
    def inside(self) -> list[str]:
        return sorted(self.device.admission._inside)

    def apply(self, name: str) -> None:
        self.device.apply(name, alone=self.chance.random() < 0.2)

    def start(self, name: str) -> None:
        if self.inside:
            self.device.admission.started(self.chance.choice(self.inside))

    def leave(self, name: str) -> None:
        if self.inside:
            self.device.now += self.chance.random()
            self.device.admission.leave(self.chance.choice(self.inside))

    def kill(self, name: str) -> None:
        if self.device.waiting:
            self.killed.add(victim := self.chance.choice(self.device.waiting))
            self.device.admission.leave(victim)

    def take(self, name: str) -> None:
        if self.chance.random() < 0.3:
            self.trees.add(name)
            self.device.admission.take(name)

    def give_up(self, name: str) -> None:
        if self.device.waiting:
            victim = self.chance.choice(self.device.waiting)
            self.device.admission.give_up(self.device.applicants[victim])

    def step(self, number: int) -> None:
        ways = [self.apply, self.apply, self.start, self.leave, self.kill, self.take, self.give_up]
        self.chance.choice(ways)(f"c{number}")

    def check(self) -> None:
        """What holds at every moment."""
        admission, device = self.device.admission, self.device
        runs = set(self.inside) - self.trees
        lone = {command for command in runs if device.alone[command]}
        assert len(runs) <= admission.slots
        assert not lone or (runs == lone and len(lone) == 1)
        # Nobody overtakes: who has come in did so in the order in which they asked.
        order = list(device.applicants)
        assert device.entered == [c for c in order if c in device.alone]
        assert device.waiting == [
            c for c in order if c not in device.alone and c not in self.killed
        ]
        # No slot stays free that the first in the queue could have.
        if device.waiting and admission.used < admission.slots:
            assert lone or (admission.waiting[0].alone and runs)

    def check_what_was_told(self) -> None:
        standings = [standing for _, standing in self.device.admission.standings()]
        assert [s.place for s in standings] == list(range(1, len(standings) + 1))
        told = [self.device.told[command] for command in self.device.waiting]
        assert [s[:3] for s in told] == [s[:3] for s in standings]
        # Nobody expects to be let in before the one before it.
        waits = [UNKNOWN if s.expected_wait_s is None else s.expected_wait_s for s in standings]
        assert waits == sorted(waits) and all(wait >= 0 for wait in waits)


@pytest.mark.parametrize("seed", range(20))
def test_a_random_walk_breaks_no_rule_and_ends_with_everybody_served(seed):
    walk = Walk(seed)
    for number in range(400):
        walk.step(number)
        walk.check()
        walk.check_what_was_told()
    # WHEN nobody comes any more, and all who are in end
    while walk.inside:
        walk.leave("")
        walk.check()
    # THEN nobody is left waiting
    device = walk.device
    assert device.waiting == [] and len(device.entered) > 20
    assert set(device.entered) == set(device.applicants) - walk.killed


@pytest.mark.parametrize("seed", range(10))
def test_a_cancelled_wait_leaves_nothing_behind_whenever_it_is_cancelled(seed):
    chance = random.Random(seed)

    async def command(admission: Admission, name: str) -> None:
        await admission.enter(name, chance.random() < 0.2, lambda _: None, 0.001)
        try:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        finally:  # from now on it is its owner's affair
            admission.leave(name)

    async def walk() -> Any:
        admission = Admission("cpu:0", 2)
        tasks = []
        for number in range(60):
            tasks.append(asyncio.create_task(command(admission, f"c{number}")))
            if chance.random() < 0.4:
                chance.choice(tasks).cancel()
            if chance.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert [t for t in tasks if not t.cancelled() and t.exception()] == []
        return admission

    admission = asyncio.run(walk())
    assert (admission.waiting, admission.used) == ([], 0)


def test_a_slot_that_was_given_to_a_cancelled_wait_goes_to_the_next():
    async def walk() -> list[bool]:
        admission: Any = Admission("cpu:0", 1)
        assert not await admission.enter("a", False, lambda _: None, None)
        waits = [
            asyncio.create_task(admission.enter(name, False, lambda _: None, None))
            for name in ("b", "c")
        ]
        await asyncio.sleep(0)
        # WHEN "b" is let in, and cancelled before it has noticed
        admission.leave("a")
        waits[0].cancel()
        await asyncio.wait(waits, timeout=30)
        return [wait.done() and not wait.cancelled() for wait in waits]

    assert asyncio.run(walk()) == [False, True]


def test_a_wait_that_is_cancelled_when_a_slot_gets_free_does_not_take_it():
    async def walk() -> bool:
        admission: Any = Admission("cpu:0", 1)
        await admission.enter("a", False, lambda _: None, None)
        wait = asyncio.create_task(admission.enter("b", False, lambda _: None, None))
        await asyncio.sleep(0)
        wait.cancel()
        admission.leave("a")
        await asyncio.wait([wait], timeout=30)
        return wait.cancelled() and admission.used == 0

    assert asyncio.run(walk())


# ---------------------------------------------------------------- what they are told


def test_the_reason_is_what_really_keeps_one_out():
    device = Device(2)
    device.apply("a", "b", "c")
    assert device.told["c"].why == "all 2 slots of cpu:0 are taken"
    device.apply("lone", alone=True)
    device.apply("d")
    assert "not free of other commands" in device.told["lone"].why
    assert "before it is to have the device for itself" in device.told["d"].why
    for command in "abc":
        device.admission.leave(command)
    assert device.told["d"].why.startswith("a command has the device for itself")
    device = Device(1)
    device.apply("a", "b")
    assert device.told["b"] == Standing(1, 1, "the only slot of cpu:0 is taken", None)


def test_a_run_is_told_once_until_it_has_read_that():
    sent: list[int] = []
    teller = Teller(lambda standing: sent.append(standing.place))
    for place in (5, 4, 3):
        teller.changed(Standing(place, 5, "slots", None))
    assert sent == [5]
    # WHEN it has read it, THEN it gets the last news, not all of them
    teller.has_read(wants_all=True)
    assert sent == [5, 3]
    teller.has_read(wants_all=True)
    assert sent == [5, 3]
    teller.changed(Standing(2, 5, "slots", None))
    assert sent == [5, 3, 2]


def test_one_that_draws_nothing_hears_only_of_other_reasons():
    sent: list[str] = []
    teller = Teller(lambda standing: sent.append(standing.why))
    teller.changed(Standing(3, 3, "slots", None))
    teller.has_read(wants_all=False)
    teller.changed(Standing(2, 3, "slots", 1.0))
    teller.changed(Standing(1, 3, "alone", 1.0))
    teller.changed(Standing(1, 3, "slots", 1.0))
    assert sent == ["slots", "alone"]
    teller.has_read(wants_all=False)
    assert sent == ["slots", "alone", "slots"]


# ---------------------------------------------------------------- what they may expect


def test_nothing_is_expected_before_any_command_has_ended():
    device = Device(1)
    device.apply("a", "b")
    assert device.expected() == [None]
    device.run("a", 10.0)
    device.apply("c")
    # "b" has just been let in, and is taken to be like "a"
    assert device.expected() == [10.0]


def test_a_command_counts_from_its_start_and_one_that_never_started_not_at_all():
    device = Device(1)
    device.apply("a", "b", "c", "d")
    device.now += 100.0  # "a" is in, but its first process does not run yet
    device.run("a", 4.0)
    assert device.expected() == [4.0, 8.0]
    device.admission.leave("b")
    assert device.expected() == [4.0]


def test_the_queue_is_played_forward():
    # GIVEN two slots, free in 3 and 7 seconds, and commands of 10 seconds
    inside = [Occupant(3.0, True, False), Occupant(7.0, True, False)]
    assert play(inside, 2, [False] * 5, 10.0) == [3, 7, 13, 17, 23]
    # A lone one waits for all before it, and all behind it for its end.
    assert play(inside, 2, [False, True, False, False], 10.0) == [3, 13, 23, 23]
    # One that is alone now keeps out others although there are slots.
    assert play([Occupant(3.0, True, True)], 2, [False, False], 10.0) == [3, 3]
    # A slot too many in use is not one that gets free.
    assert play([*inside, Occupant(UNKNOWN, False, False)], 2, [False], 10.0) == [7]
    assert play(inside, 1, [False, False], 10.0) == [7, 17]
    # Nobody knows when a preloaded tree ends; but a lone one does not wait for it.
    assert play([Occupant(UNKNOWN, False, False)], 1, [False], 10.0) == [None]
    assert play([Occupant(UNKNOWN, False, False), inside[0]], 2, [True], 10.0) == [3]
    # Nobody overtakes, so nobody behind an unknown one is known.
    assert play([inside[0], Occupant(UNKNOWN, True, False)], 2, [True, False], 1.0) == [None, None]


def test_a_command_runs_as_long_as_those_that_ran_longer_than_it_has_by_now():
    durations = Durations()
    assert durations.left(0.0) == UNKNOWN
    for seconds in (1.0, 2.0, 3.0, 10.0, 20.0):
        durations.add(seconds)
    assert durations.left(0.0) == 3.0
    assert durations.left(2.5) == pytest.approx(7.5)
    assert durations.left(15.0) == pytest.approx(5.0)
    assert durations.left(20.0) == UNKNOWN


def test_old_durations_are_forgotten():
    durations = Durations()
    for seconds in [100.0] * REMEMBERED + [1.0] * REMEMBERED:
        durations.add(seconds)
    assert durations.left(0.0) == 1.0
