# SPDX-License-Identifier: Apache-2.0
"""`krex.region` when something gets in between: it ends the mark that it began, and no other."""

import pytest

import krex
from krex.marker import shim as marks


class Shim:
    """The preloaded library's marks, which are interrupted at a place of the test's choice."""

    def __init__(self) -> None:
        self.interrupt_at = ""
        self.depth = 0
        self.waits = 0

    def _maybe_interrupt(self, place: str) -> None:
        if place == self.interrupt_at:
            raise KeyboardInterrupt

    def krex_region_begin(self, name: bytes) -> int:
        self._maybe_interrupt("before begin")
        self.depth += 1
        self._maybe_interrupt("after begin")
        return int(self.depth == 1)

    def krex_region_wait(self, seconds: float) -> int:
        self.waits += 1
        self._maybe_interrupt("wait")
        return int(self.waits < 3)

    def krex_region_end(self) -> None:
        assert self.depth
        self.depth -= 1

    def krex_region_depth(self) -> int:
        return self.depth


@pytest.fixture
def shim(monkeypatch):
    fake = Shim()
    monkeypatch.setattr(marks, "_functions", [fake])
    return fake


def test_it_waits_until_it_is_granted(shim):
    with krex.region("r"):
        assert (shim.depth, shim.waits) == (1, 3)
    assert shim.depth == 0


@pytest.mark.parametrize("place", ["before begin", "after begin", "wait"])
def test_an_interrupted_mark_is_not_left_behind(shim, place):
    shim.interrupt_at = place
    with pytest.raises(KeyboardInterrupt), krex.region("r"):
        pytest.fail("it went on")
    assert shim.depth == 0


@pytest.mark.parametrize("place", ["before begin", "after begin"])
def test_an_interrupted_inner_mark_does_not_end_the_outer_one(shim, place):
    with krex.region("outer"):
        shim.interrupt_at = place
        with pytest.raises(KeyboardInterrupt), krex.region("inner"):
            pytest.fail("it went on")
        assert shim.depth == 1
    assert shim.depth == 0


def test_an_interpreter_that_cannot_look_gets_no_ops(monkeypatch):
    monkeypatch.setattr(marks, "_functions", [])
    monkeypatch.setitem(__import__("sys").modules, "ctypes", None)  # as in a build without libffi
    with krex.region("r"):
        pass
    assert marks._functions == [None]
