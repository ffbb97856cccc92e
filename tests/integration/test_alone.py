# SPDX-License-Identifier: Apache-2.0
"""A whole command alone: `--exclusive command` waits for the others and keeps them out;
`KREX_REGION=whole` freezes them, as one long region."""

import json
import subprocess
import time
from pathlib import Path

from support.waiting import wait_for

HERE = Path(__file__).parent
BUSY, REGIONS = HERE / "busy_program.py", HERE / "region_program.py"


def finish(process: subprocess.Popen[str]) -> dict:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def span(program: dict) -> tuple[int, int]:
    """From the start of its first kernel to the end of its last."""
    return program["kernels"][0][0], program["kernels"][-1][1]


def kernels_inside(sibling: dict, interval: tuple[int, int]) -> int:
    return sum(k[0] < interval[1] and k[1] > interval[0] for k in sibling["kernels"])


def whole_region(krex) -> dict[str, str]:
    return krex.env | {"KREX_REGION": "whole"}


def applicants(krex) -> list[list[str]]:
    return [a["argv"][-1:] for a in krex.status()["devices"][0]["admission"]]


def test_exclusive_command_has_the_device_for_itself_in_its_turn(krex):
    before = krex.python(BUSY, "device")
    assert before.stdout.readline() == "ready\n"
    # GIVEN a command that wants to be alone, and one that came after it
    alone = krex.python(
        REGIONS, "2", options=("--exclusive", "command", "--report", str(krex.folder / "r"))
    )
    wait_for(lambda: applicants(krex) == [["2"]])
    after = krex.python(REGIONS, "1")
    wait_for(lambda: applicants(krex) == [["2"], ["1"]])
    # WHEN the first one ends
    results = [finish(process) for process in (before, alone, after)]
    # THEN nobody's kernels lie among the lone command's, and they came in their order
    first, lone, last = map(span, results)
    assert first[1] < lone[0] and lone[1] < last[0]
    whole, *regions = sorted(krex.records("r"), key=lambda r: r["marker"] == "explicit")
    assert (whole["marker"], whole["exclusive"], whole["pid"]) == (
        "command",
        True,
        results[1]["pid"],
    )
    assert whole["submissions"] >= len(results[1]["kernels"])
    assert [(r["exclusive"], r["hold_id"]) for r in regions] == [(True, whole["hold_id"])] * 2


def test_who_waits_is_told_its_place_and_leaves_the_queue_when_killed(krex):
    first = krex.start("run", "--", "sleep", "60")
    wait_for(lambda: krex.status()["commands"])
    waiting = krex.start("run", "--exclusive", "command", "--", "true")
    assert "waiting, place 1" in waiting.stderr.readline()
    behind = krex.start("run", "--", "true")
    assert "waiting, place 2" in behind.stderr.readline()
    waiting.kill()
    assert behind.wait(30) == 0
    first.terminate()


def test_a_command_that_waits_for_a_region_says_so_and_counts_it(krex):
    # GIVEN a command that is one region
    first = krex.start("run", "--", "sh", "-c", "echo up; read x", stdin=-1, env=whole_region(krex))
    assert first.stdout.readline() == "up\n"
    second = krex.start("run", "--report", "r", "--", "true", env=whole_region(krex))
    # THEN the next one is told, instead of wondering whether anybody answers,
    assert "a region has the device" in second.stderr.readline()
    time.sleep(0.1)
    first.communicate("go\n", timeout=60)
    second.communicate(timeout=60)
    # and what it waited stands in its record.
    [record] = krex.records("r")
    assert record["marker"] == "whole" and record["wait_s"] > 0.1


def test_exclusive_command_gives_up_after_max_wait(krex):
    first = krex.start("run", "--", "sleep", "60")
    wait_for(lambda: krex.status()["commands"])
    options = ("--exclusive", "command", "--max-wait", "0.2", "--require", "--report", "r")
    result = krex("run", *options, "--", "sh", "-c", "echo ran")
    assert (result.returncode, result.stdout) == (125, "ran\n")
    [record] = krex.records("r")
    assert (record["exclusive"], record["reasons"]) == (False, ["max_wait_exceeded"])
    first.terminate()


def test_a_whole_command_is_one_region(krex):
    sibling = krex.python(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    # --max-hold is for regions that somebody forgot to leave; a command ends by itself.
    options = ("--report", str(krex.folder / "r"), "--max-hold", "0.01", "--require")
    whole = krex.python(REGIONS, "2", options=options, KREX_REGION="whole")
    mine = finish(whole)
    busy = finish(sibling)
    assert kernels_inside(busy, span(mine)) == 0
    assert [r["exclusive"] for r in krex.records("r")] == [True] * 3
    [record] = [r for r in krex.records("r") if r["marker"] == "whole"]
    assert record["pid"] == mine["pid"] and record["siblings"]["commands_frozen"] == 1
    assert record["hold_s"] > 1e-9 * (span(mine)[1] - span(mine)[0])


def test_a_whole_command_whose_krex_run_is_killed_gives_the_device_back(krex):
    whole = krex.start(
        "run", "--", "sh", "-c", "echo up; exec sleep 60", env=krex.env | {"KREX_REGION": "whole"}
    )
    assert whole.stdout.readline() == "up\n"
    pid = krex.status()["commands"][0]["root_pid"]
    assert krex.status()["devices"][0]["gate"] == "closed"
    whole.kill()
    killed = time.monotonic()
    wait_for(lambda: krex.status()["devices"][0]["gate"] == "open")
    assert time.monotonic() - killed < 1
    subprocess.run(["kill", str(pid)], check=True)


def test_a_shared_command_says_so(krex):
    options = ("--exclusive", "none", "--report", str(krex.folder / "r"))
    process = krex.python(REGIONS, "1", options=options, KREX_REGION="whole")
    finish(process)
    found = {(r["marker"], r["exclusive"], *r["reasons"]) for r in krex.records("r")}
    assert found == {
        ("whole", False, "exclusive_none"),
        ("explicit", False, "exclusive_none"),
    }
