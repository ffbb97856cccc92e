# SPDX-License-Identifier: Apache-2.0
"""The table of known harnesses: what stands in it, what a user's file does to it."""

import re
from pathlib import Path

import pytest
from support.pages import sections

from krex import presets
from krex.errors import UsageError
from krex.marker import known
from krex.presets import table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "harnesses.md"
MINE = """
[mine]
title = "Mine"
why = "Its loop."
modules = ["mine"]
calls = ["mine.loop"]
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home without presets, and where they would be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "krex").mkdir()
    return tmp_path / "krex" / "presets.toml"


def test_what_interpreters_know_is_what_the_table_says():
    builtin = table.read(table.BUILTIN)
    assert list(known.CALLS) == table.targets(builtin)
    source = Path(known.__file__).read_text(encoding="utf-8")
    assert source == table.known_source(builtin), "run `python -m krex.presets`"


def test_the_page_has_each_harness_with_its_status():
    page = PAGE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n+\*(.+?)\*", page, re.MULTILINE))
    builtin = table.read(table.BUILTIN)
    assert {p.title: p.status for p in builtin.values()} == sections


@pytest.mark.parametrize("preset", table.read(table.BUILTIN).values(), ids=lambda p: p.title)
def test_its_section_says_what_the_table_says(preset):
    # One text in two places: `krex explain` prints the table's.
    section = " ".join(sections(PAGE)[preset.title].split())
    assert f"*{preset.status}*; the names are those of {preset.checked}." in section
    assert [text for text in (preset.why, *preset.notes) if text not in section] == []
    # AND its command is one that marks it
    [words] = re.findall(r"^(?:\$ )?(.*)krex run .*-- ", sections(PAGE)[preset.title], re.MULTILINE)
    assert ("KREX_REGION=" in words) == (preset.region != "auto")
    assert preset.region == "auto" or f"KREX_REGION={preset.region} " in words


def test_a_users_file_adds_and_replaces(home):
    # GIVEN a file with a harness of the user's own, and one that replaces a known one
    home.write_text(MINE + MINE.replace("[mine]", "[triton]").replace("mine.loop", "mine.other"))
    # WHEN the table is loaded THEN it has both, and the others
    loaded = table.load()
    assert loaded["mine"].calls == ["mine.loop"] and loaded["mine"].status == "yours"
    assert loaded["triton"].calls == ["mine.other"]
    assert "kernelbench" in loaded
    # AND a command's interpreters are told of all of it
    told = presets.variables(None)["KREX_CALLS"].split(",")
    assert {"mine.loop", "mine.other"} < set(told) and "triton.testing.do_bench" not in told
    assert any(name.startswith("hook:torch.") for name in told)


def test_a_file_that_is_given_goes_over_the_users(home, tmp_path):
    home.write_text(MINE)
    given = tmp_path / "given.toml"
    given.write_text(MINE.replace("mine.loop", "given.loop"))
    assert table.load(str(given))["mine"].calls == ["given.loop"]


def test_without_a_file_of_the_users_nothing_is_said_or_read(home):
    assert presets.variables(None) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mine", "unclosed|Expected|expected"),
        ('[mine]\ntitle = "a"\n', "why"),
        (MINE + "unknown = 1\n", "unknown"),
        (MINE.replace("mine.loop", "loop"), "'loop' is not the dotted name"),
        (MINE.replace('modules = ["mine"]\n', ""), "neither modules nor programs"),
        (MINE + 'region = "evnts"\n', "region: 'evnts' is none"),
        (MINE + 'status = "great"\n', "status"),
    ],
)
def test_a_wrong_file_is_named_and_so_is_what_is_wrong(home, text, said):
    home.write_text(text)
    with pytest.raises(UsageError, match=said) as error:
        table.load()
    assert str(home) in str(error.value)


def test_a_file_that_is_not_there_is_an_error(home):
    with pytest.raises(UsageError, match="cannot be read"):
        table.load("/nowhere/presets.toml")
