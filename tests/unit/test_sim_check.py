# SPDX-License-Identifier: Apache-2.0
"""`krex sim check`: what it calls a violation, and that it finds one."""

import json

import pytest
from support.sim_device import krex_command

from krex.errors import EXIT_FAILED, EXIT_USAGE
from krex.sim import check, log

HOLDER, SIBLING, CHILD = 10, 20, 11
GRANTED, RELEASED = 1000, 2000


def interval(arrival, start, end, pid=SIBLING, **more):
    fields = {
        "device": "sim:0", "context": 1, "pid": pid, "kind": "run", "stream": 0, "seq": 1,
        "arrival_ns": arrival, "start_ns": start, "end_ns": end, "status": "ok", "name": "k",
    }  # fmt: skip
    return log.Interval(**fields | more)


def record(**more):
    whole = {
        "schema": "krex.region", "schema_version": 1, "region_id": "r", "command": "c",
        "device": "sim:0", "exclusive": True, "granted_ns": GRANTED, "released_ns": RELEASED,
        "holder_pids": [HOLDER, CHILD],
    }  # fmt: skip
    return whole | more


def write_log(path, *intervals, covered=9999):
    lines = ["\t".join(log.COLUMNS), *("\t".join(map(str, i)) for i in intervals)]
    if covered:
        lines.append(f"# covered {covered}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_records(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


@pytest.fixture
def checked(tmp_path):
    """Check intervals against one region; the whole result."""

    def run(*intervals, covered=9999, records=None):
        found = log.read(write_log(tmp_path / "log", *intervals, covered=covered))
        path = write_records(tmp_path / "report", *(records or [record()]))
        return check.check(found, check.read_records(path))

    return run


def broken(result):
    return [violation.invariant for violation in result.violations]


@pytest.mark.parametrize(
    ("times", "which"),
    [
        ((1500, 1500, 1600), ["G1", "G2"]),  # in the middle
        ((900, 900, 1001), ["G2"]),  # was not drained
        ((900, 1500, 1600), ["G2"]),  # submitted before, begun in it
        ((900, 900, 5000), ["G2"]),  # all the time
        ((1999, 2500, 2600), ["G1"]),  # submitted in it, begun after
        ((1001, 1001, 1001), ["G1", "G2"]),  # of no length
    ],
)
def test_what_is_a_violation(checked, times, which):
    result = checked(interval(*times))
    assert broken(result) == which
    assert not result.is_clean
    assert {(v.pid, v.region_id, v.name) for v in result.violations} == {(SIBLING, "r", "k")}


@pytest.mark.parametrize(
    "times",
    [
        (500, 500, GRANTED),  # up to the edge
        (GRANTED, GRANTED, GRANTED),
        (RELEASED, RELEASED, 3000),
        (100, 100, 200),
        (3000, 3000, 4000),
    ],
)
def test_to_touch_is_no_violation(checked, times):
    assert checked(interval(*times)).is_clean


@pytest.mark.parametrize("pid", [HOLDER, CHILD])
def test_the_holder_and_its_children_may(checked, pid):
    assert checked(interval(1500, 1500, 1600, pid=pid)).is_clean


def test_another_device_is_of_no_concern(checked):
    assert checked(interval(1500, 1500, 1600, device="sim:1")).is_clean


@pytest.mark.parametrize("kind", sorted(log.WORK))
def test_every_kind_of_work_counts(checked, kind):
    assert broken(checked(interval(1500, 1500, 1600, kind=kind))) == ["G1", "G2"]


def test_the_making_of_a_context_is_counted_apart(checked):
    result = checked(interval(1500, 1500, 1600, kind="context"))
    assert (result.is_clean, result.heavy_beside) == (True, 1)


def test_a_region_that_was_not_exclusive_claims_nothing(checked):
    shared = record(exclusive=False, granted_ns=0)
    result = checked(interval(1500, 1500, 1600), records=[shared])
    assert (result.is_clean, result.regions, result.exclusive) == (True, 1, 0)


def test_a_log_that_is_not_whole_proves_nothing(checked):
    assert not checked(covered=RELEASED - 1).is_clean
    assert not checked(covered=None).is_clean
    assert checked(covered=RELEASED).is_clean


@pytest.mark.parametrize(
    ("covered", "after_log", "told"),
    [
        (GRANTED - 1, 1, "the log ends before 1 exclusive region: is it of another run?"),
        (None, 1, "the log ends before 1 exclusive region: is it of another run?"),
        (GRANTED, 0, "the log is not whole up to the end of 1 exclusive region:"),
    ],
)
def test_a_log_of_another_run_is_told_from_one_that_is_not_whole(checked, covered, after_log, told):
    result = checked(covered=covered)
    assert (result.uncovered, result.after_log) == (1, after_log)
    [line] = [line for line in check.render(result) if line.startswith("the log")]
    assert line.startswith(told)


def test_a_log_that_goes_on_after_it_was_whole_is_of_this_run(checked):
    result = checked(interval(1500, 1500, 1600, pid=HOLDER), covered=GRANTED - 1)
    assert (result.uncovered, result.after_log) == (1, 0)


def test_each_violation_is_found_among_many(checked):
    # GIVEN a thousand regions, between which the sibling runs, and a long one around ten of them
    regions = [
        record(region_id=str(n), granted_ns=10_000 * n, released_ns=10_000 * n + 5000)
        for n in range(1, 1001)
    ]
    regions.append(record(region_id="long", granted_ns=50_000, released_ns=150_000))
    between = [interval(10_000 * n + 5000, 10_000 * n + 5000, 10_000 * n + 10_000) for n in
               range(20, 1000)]  # fmt: skip
    # WHEN it runs in one of them, and once in the long one
    within = [interval(7_002_000, 7_002_000, 7_003_000), interval(96_000, 96_000, 97_000)]
    result = checked(*between, *within, covered=10**9, records=regions)
    # THEN these are found, and no others
    assert sorted((v.region_id, v.invariant) for v in result.violations) == [
        ("700", "G1"),
        ("700", "G2"),
        ("long", "G1"),
        ("long", "G2"),
    ]


def run_check(tmp_path, *words):
    return krex_command("sim", "check", *words, str(tmp_path / "log"), str(tmp_path / "report"))


def test_the_command_says_what_it_found(tmp_path):
    write_records(tmp_path / "report", record(), {"schema": "krex.command"}, record(device="cpu:0"))
    write_log(tmp_path / "log", interval(500, 500, 600))
    clean = run_check(tmp_path)
    assert clean.returncode == 0
    assert "simulated: 1 regions, 1 of them exclusive" in clean.stdout
    assert "violations: 0" in clean.stdout
    write_log(tmp_path / "log", interval(1500, 1500, 1600))
    bad = run_check(tmp_path)
    assert bad.returncode == EXIT_FAILED
    assert "G1 sim:0: process 20: run k" in bad.stdout
    found = json.loads(run_check(tmp_path, "--json").stdout)
    assert (found["schema"], found["simulated"], len(found["violations"])) == (
        "krex.sim-check",
        True,
        2,
    )


@pytest.mark.parametrize("records", [[], [{"schema": "krex.command"}, record(device="cpu:0")]])
def test_reports_without_a_simulated_region_are_nothing_to_check(tmp_path, records):
    write_log(tmp_path / "log", interval(1500, 1500, 1600))
    write_records(tmp_path / "report", *records)
    done = run_check(tmp_path)
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    told = "nothing to check: no record of a region on a simulated device in "
    assert f"{told}{tmp_path / 'report'};" in done.stderr


def test_a_log_in_the_place_of_a_report_is_told(tmp_path):
    write_records(tmp_path / "log", record())
    write_log(tmp_path / "report", interval(500, 500, 600))
    done = run_check(tmp_path)
    assert done.returncode == EXIT_USAGE
    assert f"{tmp_path / 'report'} is a log of simulated devices" in done.stderr
    assert "the order is `krex sim check LOG REPORT...`" in done.stderr


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda log, report: log.write_text("something\n"), "does not name the columns"),
        (lambda log, report: log.write_text(log.read_text() + "sim:0\t1"), "is not whole"),
        (lambda log, report: report.write_text("{"), "line 1: not JSON"),
        (lambda log, report: report.write_text("[]"), "line 1: not an object"),
        (
            lambda log, report: write_records(report, record(), record(holder_pids=None)),
            "line 2",
        ),
    ],
)
def test_what_can_not_be_read_is_no_violation_and_not_clean(tmp_path, spoil, told):
    write_log(tmp_path / "log")
    write_records(tmp_path / "report", record())
    spoil(tmp_path / "log", tmp_path / "report")
    done = run_check(tmp_path)
    assert done.returncode == EXIT_USAGE
    assert told in done.stderr


def test_an_exclusive_region_without_its_times_is_refused(tmp_path):
    write_log(tmp_path / "log")
    lacking = record()
    del lacking["released_ns"]
    write_records(tmp_path / "report", lacking)
    done = run_check(tmp_path)
    assert done.returncode == EXIT_USAGE
    assert "without 'released_ns'" in done.stderr
