# SPDX-License-Identifier: Apache-2.0
"""Records become findings: each finding from what it is about, and from nothing beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from krex import audit
from krex.cli.audit import command
from krex.errors import UsageError

GOOD_TIMING = {
    "timed_events": 40,
    "timed_pairs_inside": 20,
    "timed_pairs_total": 20,
    "timed_pairs_outside": 0,
    "timed_s": 0.02,
    "shortest_pair_s": 0.0009,
    "shortest_pair_launches": 1,
    "cold_start": False,
    "below_noise_floor": 0,
    "empty_pairs": 0,
    "uncovered_pairs": 0,
    "shared_pairs": 0,
    "pairs_with_work_behind": 0,
    "disturbed_pairs": 0,
}
GOOD: dict[str, Any] = {
    "schema": "krex.region",
    "region_id": "r-1-1",
    "command": "c-1-1",
    "pid": 17,
    "name": "sgemm",
    "exclusive": True,
    "reasons": [],
    "hold_s": 0.03,
    "submissions": 60,
    "work_at_end": False,
    "foreign_processes": {"at_start": [], "at_end": []},
    "timing": GOOD_TIMING,
}
COMMAND: dict[str, Any] = {
    "schema": "krex.command",
    "command": "c-1-1",
    "status": 0,
    "frozen_s": 0.0,
    "limit_suspected": False,
    "timed_pairs_total": 20,
    "timed_pairs_outside": 0,
}
UNPAIRED = dict.fromkeys(GOOD_TIMING, 0) | {"cold_start": False}
del UNPAIRED["shortest_pair_s"], UNPAIRED["shortest_pair_launches"]
STRANGER = {"pid": 9, "name": "miner"}


def timed(**keys: Any) -> dict[str, Any]:
    return GOOD | {"timing": GOOD_TIMING | keys}


# Each finding, from a record that gives it and nothing else.
BAD: dict[str, dict[str, Any]] = {
    "not_exclusive": GOOD | {"exclusive": False, "reasons": ["lease_lost"]},
    "timed_outside": timed(timed_pairs_outside=3, timed_pairs_total=23),
    "no_work_in_region": GOOD | {"submissions": 0},
    "unread_pairs": GOOD | {"timing": UNPAIRED | {"timed_events": 40}},
    "no_timing_events": GOOD | {"timing": UNPAIRED},
    "empty_pair": timed(empty_pairs=2),
    "uncovered_work": timed(uncovered_pairs=20),
    "other_threads": timed(shared_pairs=1),
    "work_behind": timed(pairs_with_work_behind=1),
    "disturbed": timed(disturbed_pairs=1),
    "cold_start": timed(cold_start=True),
    "below_noise_floor": timed(below_noise_floor=20, shortest_pair_s=0.000012),
    "mostly_idle": GOOD | {"hold_s": 5.0},
    "work_at_end": GOOD | {"work_at_end": True},
    "foreign_process": GOOD | {"foreign_processes": {"at_start": [STRANGER], "at_end": []}},
    "out_of_memory": GOOD | {"oom_while_shared": [{"pid": 17, "wanted_bytes": 1, "others": []}]},
    "frozen_past_limit": COMMAND | {"limit_suspected": True, "frozen_s": 3.5, "status": 124},
    "waited_past_limit": COMMAND | {"limit_wait_s": 2.1},
}
# These need more than a record, or less.
REPORTED, UNCHECKED, NO_REGION = "reported_disagrees", "reported_unchecked", "no_region"


def codes(*records: dict[str, Any], **options: Any) -> list[str]:
    return [finding.code for finding in audit.audit(records, **options).findings]


def test_records_with_nothing_against_them_give_no_findings():
    assert codes(GOOD, COMMAND) == []


def test_every_finding_is_tried_here():
    assert {*BAD, REPORTED, UNCHECKED, NO_REGION} == set(audit.KINDS)


@pytest.mark.parametrize("code", BAD)
def test_a_record_gives_its_finding_and_no_other(code):
    assert codes(BAD[code], GOOD | {"command": "c-2-2"}) == [code]


def test_a_record_of_an_earlier_version_gives_what_it_can():
    bare = {"schema": "krex.region", "exclusive": False, "reasons": ["unheard_of"]}
    assert codes(bare) == ["not_exclusive"]
    assert codes(GOOD, {"schema": "krex.something"}) == []
    assert codes(GOOD | {"timing": None}) == []


@pytest.mark.parametrize("records", [[], [COMMAND], [{"schema": "krex.something"}]])
def test_files_without_a_region_are_an_error(records):
    [finding] = audit.audit(records).findings
    assert (finding.code, finding.severity, finding.command) == (NO_REGION, "error", "")


@pytest.mark.parametrize("code", ["unread_pairs", "no_timing_events"])
def test_of_a_region_without_work_it_is_enough_to_say_that(code):
    assert codes(BAD[code] | {"submissions": 0}) == ["no_work_in_region"]


def test_short_pairs_come_with_the_launches_that_they_need():
    [finding] = audit.audit([BAD["below_noise_floor"]]).findings
    assert "20 of 20 pairs" in finding.detail
    assert "about 9 a pair" in finding.detail  # 9 x 12 us


def test_what_lay_outside_is_said_once_by_who_knows_it_last():
    early, late = timed(timed_pairs_outside=1), timed(timed_pairs_outside=2)
    whole = COMMAND | {"timed_pairs_outside": 5}
    assert codes(early, late) == ["timed_outside"]
    [finding] = audit.audit([early, late, whole]).findings
    assert finding.detail == "5 of 20 pairs"
    assert codes(early, COMMAND) == []  # those were read later, and were inside


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        (0.001, []),  # the mean
        (0.0009, []),  # the shortest
        (0.0004, [REPORTED]),
        (0.003, [REPORTED]),
        (1.0, [REPORTED]),  # milliseconds taken for seconds
    ],
)
def test_a_number_of_the_harness_is_held_against_the_drivers(seconds, found):
    other = GOOD | {"name": "other"}
    assert codes(GOOD, other, reported={"sgemm": seconds}) == found


@pytest.mark.parametrize("code", ["unread_pairs", "no_timing_events"])
def test_a_number_that_no_pair_can_be_held_against_is_told(code):
    assert codes(BAD[code], reported={"sgemm": 0.001}) == [code, UNCHECKED]
    assert audit.KINDS[UNCHECKED].severity == "warning"


@pytest.mark.parametrize(
    ("records", "told"),
    [([GOOD, GOOD | {"name": "dgemm"}], "'dgemm', 'sgemm'"), ([], "there is none at all")],
)
def test_a_number_of_no_region_is_refused(records, told):
    with pytest.raises(UsageError, match=f"--reported nosuch: .*{told}"):
        audit.audit(records, {"sgemm": 1.0, "nosuch": 0.5} if records else {"nosuch": 0.5})


def test_a_number_may_be_of_one_launch_of_several():
    ten = timed(shortest_pair_launches=10)
    assert codes(ten, reported={"sgemm": 0.0001}) == []
    assert codes(ten, reported={"sgemm": 0.0003}) == [REPORTED]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """One with a warning and a note."""
    path = tmp_path / "r.jsonl"
    records = [BAD["cold_start"], GOOD, BAD["mostly_idle"]]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_command_says_what_to_do_worst_first(report):
    result = CliRunner().invoke(command, [str(report)])
    assert result.exit_code == 0
    assert re.findall(r"^(\w+): r-1-1 sgemm: (\w+):", result.output, re.M) == [
        ("warning", "cold_start"),
        ("note", "mostly_idle"),
    ]
    assert audit.KINDS["cold_start"].fix in result.output
    assert result.output.endswith("3 regions: 0 errors, 1 warning, 1 note\n")


@pytest.mark.parametrize(("severity", "status"), [("note", 1), ("warning", 1), ("error", 0)])
def test_the_status_is_for_scripts(report, severity, status):
    result = CliRunner().invoke(command, ["--fail-on", severity, str(report)])
    assert result.exit_code == status


def test_a_report_without_a_region_fails_in_scripts(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("")
    result = CliRunner().invoke(command, ["--fail-on", "error", str(path)])
    assert result.exit_code == 1
    assert result.output.startswith("error: all files: no_region: ")
    assert result.output.endswith("0 regions: 1 error, 0 warnings, 0 notes\n")


def test_the_object_has_the_same(report):
    result = CliRunner().invoke(command, ["--json", "--reported", "sgemm=7", str(report)])
    found = json.loads(result.output)
    assert (found["schema"], found["regions"]) == ("krex.audit", 3)
    assert [f["code"] for f in found["findings"]].count(REPORTED) == 3


@pytest.mark.parametrize("word", ["sgemm", "sgemm=fast", "[1]"])
def test_a_number_that_is_none_is_refused(tmp_path, word):
    path = tmp_path / "numbers"
    path.write_text(word)
    with pytest.raises(UsageError, match="NAME=SECONDS"):
        audit.read_reported(str(path) if word.startswith("[") else word)


def test_numbers_come_from_a_file_too(tmp_path):
    path = tmp_path / "numbers.json"
    path.write_text('{"a": 0.5, "b": 1}')
    assert audit.read_reported(str(path)) == {"a": 0.5, "b": 1.0}


def test_a_line_that_is_no_object_is_said(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"schema": "krex.region"}\nnonsense\n')
    with pytest.raises(UsageError, match="line 2"):
        audit.read(path)
