# SPDX-License-Identifier: Apache-2.0
"""Captures, graphs and modules of the simulated driver: each scenario of a program is a test."""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def scenarios(program: str) -> list[str]:
    """The names of the scenarios in a program's text."""
    text = (HERE / program).read_text()
    return re.findall(r"^@scenario\ndef (\w+)\(", text, re.MULTILINE)


def test_every_program_has_scenarios():
    programs = ("capture_program.py", "graph_program.py", "module_program.py")
    assert all(len(scenarios(program)) > 10 for program in programs)


@pytest.mark.parametrize("scenario", scenarios("capture_program.py"))
def test_a_capture_obeys_the_vendor_s_rules(devices, scenario):
    devices.run(sys.executable, HERE / "capture_program.py", scenario)


@pytest.mark.parametrize("scenario", scenarios("graph_program.py"))
def test_a_graph_does_what_it_was_given(devices, scenario):
    devices.run(sys.executable, HERE / "graph_program.py", scenario)


@pytest.mark.parametrize("scenario", scenarios("module_program.py"))
def test_a_module_is_what_its_image_says(devices, scenario):
    devices.run(sys.executable, HERE / "module_program.py", scenario)
