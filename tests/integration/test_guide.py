# SPDX-License-Identifier: Apache-2.0
"""The user guide's examples do what the guide says."""

from pathlib import Path

import pytest
from support.command_line import Krex
from support.pages import matches, run_examples

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert matches("took ... ms\n", "took 0.1 ms\n")
    assert not matches("took ... ms\n", "took 0.1 s\n")
    assert not matches("3\n", "33\n")


@pytest.mark.timeout(300)
def test_the_examples_do_what_the_guide_says(krex: Krex) -> None:
    assert run_examples(GUIDE.read_text(encoding="utf-8"), krex) >= 10
    # What the guide says of the reports without printing them.
    assert [r["exclusive"] for r in krex.records("regions.jsonl")] == [True]
    assert [r["name"] for r in krex.records("decorated.jsonl")] == ["first", "the second"]
    assert [r["name"] for r in krex.records("c.jsonl")] == ["loop"]
    assert [r["name"] for r in krex.records("preloaded.jsonl")] == ["twice"]
