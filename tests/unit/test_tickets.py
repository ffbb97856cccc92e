# SPDX-License-Identifier: Apache-2.0
"""Tickets for making a context, from the controller's side."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from krex.controller import tickets as module
from krex.controller.board import Board
from krex.controller.tickets import Tickets
from krex.native import lib


class FakeDevice:
    """A board, and nothing else."""

    def __init__(self) -> None:
        self.board = Board("sim:0", lambda _name: None)


class FakeProcess:
    """A process with a block; `ticket` is the number of the last one that it was given."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.block = lib.krex_block_reserve(device.board.c, 1)

    @property
    def ticket(self) -> int:
        return int(lib.krex_block_ticket(self.device.board.c, self.block))


class Scene:
    """Three processes on two devices, and whether somebody acquires a region."""

    def __init__(self) -> None:
        self.acquiring = False
        self.tickets = Tickets(lambda: not self.acquiring)
        one, other = FakeDevice(), FakeDevice()
        self.a: Any = FakeProcess(one)
        self.b: Any = FakeProcess(other)
        self.c: Any = FakeProcess(one)

    @property
    def given(self) -> tuple[int, int, int]:
        return self.a.ticket, self.b.ticket, self.c.ticket


def within(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(steps)


def test_given_one_out_when_others_ask_then_they_get_theirs_in_turn() -> None:
    async def steps() -> None:
        scene = Scene()
        scene.tickets.ask(scene.a, 1)
        scene.tickets.ask(scene.b, 5)
        scene.tickets.ask(scene.c, 9)
        assert scene.given == (1, 0, 0)
        scene.tickets.give_back(scene.a, 1)
        assert scene.given == (1, 5, 0)
        scene.tickets.ask(scene.a, 2)
        scene.tickets.give_back(scene.b, 5)
        assert scene.given == (1, 5, 9)
        scene.tickets.give_back(scene.c, 9)
        assert scene.given == (2, 5, 9)

    within(steps())


def test_given_a_region_that_is_acquired_then_none_is_given_before_it_is_looked_again() -> None:
    async def steps() -> None:
        scene = Scene()
        scene.acquiring = True
        scene.tickets.ask(scene.a, 1)
        scene.tickets.ask(scene.b, 1)
        assert scene.given == (0, 0, 0)
        scene.acquiring = False
        scene.tickets.look()
        scene.tickets.look()
        assert scene.given == (1, 0, 0)

    within(steps())


def test_given_one_that_is_no_longer_waited_for_then_it_is_not_given() -> None:
    async def steps() -> None:
        scene = Scene()
        scene.tickets.ask(scene.a, 1)
        scene.tickets.ask(scene.b, 1)
        scene.tickets.ask(scene.c, 1)
        scene.tickets.give_back(scene.b, 1)
        scene.tickets.give_back(scene.a, 1)
        assert scene.given == (1, 0, 1)

    within(steps())


def test_given_an_unknown_one_when_it_is_returned_then_the_one_that_is_out_stays_out() -> None:
    async def steps() -> None:
        scene = Scene()
        scene.tickets.ask(scene.a, 2)
        scene.tickets.ask(scene.b, 1)
        scene.tickets.give_back(scene.a, 1)
        scene.tickets.give_back(scene.c, 2)
        assert scene.given == (2, 0, 0)

    within(steps())


def test_given_an_owner_when_it_dies_then_the_next_one_gets_its_ticket() -> None:
    async def steps() -> None:
        scene = Scene()
        scene.tickets.ask(scene.a, 1)
        scene.tickets.ask(scene.c, 1)
        scene.tickets.ask(scene.a, 2)
        scene.tickets.ask(scene.b, 1)
        scene.tickets.forget(scene.c)
        scene.tickets.forget(scene.a)
        assert scene.given == (1, 1, 0)

    within(steps())


def test_given_an_owner_that_hangs_then_it_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.0)

    async def steps() -> None:
        scene = Scene()
        scene.tickets.ask(scene.a, 1)
        scene.tickets.ask(scene.b, 1)
        assert scene.given == (1, 0, 0)
        while scene.b.ticket == 0:  # noqa: ASYNC110
            await asyncio.sleep(0)
        scene.tickets.ask(scene.c, 1)
        scene.tickets.give_back(scene.a, 1)  # at last; it is another's turn
        assert scene.given[:2] == (1, 1)

    within(steps())
