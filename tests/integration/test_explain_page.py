# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/harnesses.md do what the page says."""

from pathlib import Path

import pytest
from support.command_line import Krex
from support.pages import run_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "harnesses.md"


@pytest.mark.timeout(300)
def test_the_examples_do_what_the_page_says(krex: Krex) -> None:
    krex.env["XDG_CONFIG_HOME"] = str(krex.folder / "config")
    assert run_page(PAGE, krex) == 4
    # What the page says of the reports without printing them.
    assert [r["marker"] for r in krex.records("named.jsonl")] == ["call"]
    assert [r["name"] for r in krex.records("preset.jsonl")] == ["mybench.measure"]
