# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/harnesses.md do what the page says."""

from pathlib import Path

import pytest
from support.clients import python_with, python_with_torch
from support.command_line import Krex
from support.pages import run_examples, sections

PAGE = Path(__file__).resolve().parents[2] / "docs" / "harnesses.md"
TORCH, TUNER = "torch.utils.benchmark", "Kernel Tuner"


@pytest.fixture
def page(krex: Krex) -> dict[str, str]:
    krex.env["XDG_CONFIG_HOME"] = str(krex.folder / "config")
    return sections(PAGE)


@pytest.mark.timeout(300)
def test_the_examples_do_what_the_page_says(krex: Krex, page: dict[str, str]) -> None:
    for heading in (TORCH, TUNER):
        del page[heading]
    assert run_examples("".join(page.values()), krex) == 4
    # What the page says of the reports without printing them.
    assert [r["marker"] for r in krex.records("named.jsonl")] == ["call"]
    assert [r["name"] for r in krex.records("preset.jsonl")] == ["mybench.measure"]


def test_those_of_kernel_tuner_do(krex: Krex, page: dict[str, str]) -> None:
    python = python_with("kernel_tuner", "pyopencl")
    assert run_examples(page[TUNER], krex, python) == 1
    assert all(r["exclusive"] for r in krex.records("tuned.jsonl"))


@pytest.mark.slow
def test_those_of_torch_do(krex: Krex, page: dict[str, str]) -> None:
    assert run_examples(page[TORCH], krex, python_with_torch()) == 1
    assert krex.records("torch.jsonl") == []  # its CPU build uses no device
