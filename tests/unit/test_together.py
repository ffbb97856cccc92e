# SPDX-License-Identifier: Apache-2.0
"""Many groups frozen and thawed at once; what the kernel says of them is what counts."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator

import pytest
from support.waiting import DEADLINE_S, wait_for

from krex.protect import together
from krex.protect.freezer import Group, find_base

pytestmark = pytest.mark.skipif(find_base() is None, reason="no writable cgroup v2 directory")


class Inhabited:
    """Some groups, each with a process that is busy."""

    def __init__(self, count: int) -> None:
        name = f"krex-c-test-{uuid.uuid4().hex[:8]}"
        self.groups = [Group(find_base() / f"{name}-{i}") for i in range(count)]
        self.children = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in self.groups]
        for group, child in zip(self.groups, self.children, strict=True):
            group.take(child.pid)

    def end(self, index: int) -> None:
        """Kill what is in one of them; frozen it dies, too."""
        self.children[index].kill()
        self.children[index].wait()
        wait_for(self.groups[index].is_empty)

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
        for group in self.groups:
            if group.path.exists():
                wait_for(group.remove)


@pytest.fixture
def three() -> Iterator[Inhabited]:
    inhabited = Inhabited(3)
    yield inhabited
    inhabited.close()


def asked(group: Group) -> str:
    return (group.path / "cgroup.freeze").read_text().strip()


def test_all_stand_still_and_run_again(three: Inhabited) -> None:
    # WHEN all are frozen THEN all stand still as soon as it is said,
    together.freeze(three.groups)
    assert together.await_frozen(three.groups, DEADLINE_S) == []
    assert all(group.is_frozen() for group in three.groups)
    # AND after the thaw they run, and know how often they stood still.
    together.thaw(three.groups)
    assert [asked(group) for group in three.groups] == ["0"] * 3
    wait_for(lambda: not any(group.is_frozen() for group in three.groups))
    assert [group.stillness().times for group in three.groups] == [1] * 3
    assert all(group.stillness().total_s > 0 for group in three.groups)


def test_one_that_runs_is_named(three: Inhabited) -> None:
    running, *still = three.groups
    together.freeze(still)
    assert together.await_frozen(still, DEADLINE_S) == []
    assert together.await_frozen(three.groups, 0) == [running]


def test_an_empty_group_stands_still(three: Inhabited) -> None:
    three.end(0)
    assert together.await_frozen(three.groups[:1], 0) == []


def test_a_group_that_is_gone_keeps_nobody_waiting_nor_frozen(three: Inhabited) -> None:
    # GIVEN groups that stand still, the first of which somebody else removes
    together.freeze(three.groups)
    three.end(0)
    three.groups[0].path.rmdir()
    # THEN nobody waits for it, and the others are thawed all the same;
    assert together.await_frozen(three.groups, DEADLINE_S) == []
    together.thaw(three.groups)
    assert [asked(group) for group in three.groups[1:]] == ["0", "0"]
    # AND to freeze it is an error, which leaves nothing that a thaw overlooks.
    with pytest.raises(OSError, match="No such device"):
        together.freeze(three.groups)
    together.thaw(three.groups)
    assert [asked(group) for group in three.groups[1:]] == ["0", "0"]


def test_who_stands_still_already_is_left_alone(three: Inhabited) -> None:
    first = three.groups[0]
    together.freeze([first])
    together.freeze(three.groups)
    together.thaw(three.groups)
    assert first.stillness().times == 1
