# SPDX-License-Identifier: Apache-2.0
"""A mark that yields and comes back has one record, with what is known of each of its holds."""

from types import SimpleNamespace
from typing import Any

import pytest

from krex.controller import mark as marks
from krex.controller.cores import without
from krex.record import RegionRecord


@pytest.fixture
def sent() -> list[RegionRecord]:
    return []


@pytest.fixture
def first(sent: list[RegionRecord]) -> marks.ThreadMark:
    device = SimpleNamespace(key="sim:0", is_simulated=True)
    command: Any = SimpleNamespace(
        id="c-1-1",
        tenant="",
        protect="freeze",
        device=device,
        allotment=without("sim:0"),
        refusals=[],
    )
    process: Any = SimpleNamespace(
        pid=7, command=command, device=device, regions=0, send_record=sent.append
    )
    return marks.ThreadMark(process, 0, "function", 7, "call")


def its_hold_ends(mark: marks.ThreadMark, *, yields: bool) -> None:
    mark.yielded = yields
    mark.record.hold_s, mark.record.submissions = 1.0, 10
    mark.send()


def test_what_is_known_of_its_first_hold_is_in_the_record_of_the_third(first, sent):
    # GIVEN a mark whose first hold was disturbed, and which yielded twice
    first.not_exclusive("sibling_ran")
    its_hold_ends(first, yields=True)
    second = first.comes_back(7)
    second.record.exclusive = True
    its_hold_ends(second, yields=True)
    third = second.comes_back(7)
    third.record.exclusive = True
    # WHEN its third hold ends, and so does it
    its_hold_ends(third, yields=False)
    # THEN it has one record, which tells of all three
    [record] = sent
    assert (record.exclusive, record.reasons) == (False, ["sibling_ran"])
    assert isinstance(record.earlier_holds, list) and len(record.earlier_holds) == 2
    assert (record.hold_s, record.submissions, record.index) == (3.0, 30, first.record.index)


def test_another_mark_in_the_slot_is_not_taken_for_it(first, monkeypatch):
    # GIVEN a mark that yielded, and whose end was lost
    its_hold_ends(first, yields=True)
    finished = []
    monkeypatch.setattr(first, "finish", lambda: finished.append(first))
    device: Any = SimpleNamespace(leave=lambda mark: None)
    process: Any = SimpleNamespace(**vars(first.process) | {"device": device})
    process.device.key, process.device.is_simulated = "sim:0", True
    # WHEN its slot asks for another region THEN that is a new one, and the old one is over
    other = marks.asking(first, process, 0, "other", 7, "explicit")
    assert other.record.region_id != first.record.region_id
    assert finished == [first]
    # but for the same one, which comes back
    again = marks.asking(first, process, 0, "function", 7, "call")
    assert again.record.region_id == first.record.region_id
