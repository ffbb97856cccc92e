# SPDX-License-Identifier: Apache-2.0
"""`krex thaw`: after a crash, and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import Krex
from support.waiting import DEADLINE_S, wait_for


def frozen_sibling(krex: Krex):
    """(a command that is frozen, its entry in the status, the command that holds the device)."""
    sibling = krex.popen(*krex.base, "run", "--", "sh", "-c", "echo up; read line; echo over")
    assert sibling.stdout.readline() == "up\n"
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    [entry] = [c for c in krex.status()["commands"] if c["frozen"]]
    return sibling, entry, holder


def is_frozen(entry) -> bool:
    events = Path(entry["cgroup"], "cgroup.events")
    return events.exists() and "frozen 1" in events.read_text()


def leave(krex: Krex, holder) -> dict:
    holder.communicate("leave\n", timeout=DEADLINE_S)
    [record] = krex.records("h.jsonl")
    return record


def test_what_a_dead_controller_left_is_thawed_and_tidied_up(krex: Krex) -> None:
    sibling, entry, holder = frozen_sibling(krex)
    # GIVEN a frozen command whose krex run, and whose controller, were killed
    sibling.kill()
    sibling.wait()
    krex.serve.kill()
    krex.serve.wait()
    # WHEN somebody says so THEN it runs on,
    thawed = krex("thaw", "--all")
    assert (thawed.returncode, thawed.stderr) == (0, "")
    assert f"thawed {entry['cgroup']}\n" in thawed.stdout
    assert f"still running, without protection: {entry['cgroup']}\n" in thawed.stdout
    assert not Path(krex.env["KREX_SOCKET"]).exists()
    sibling.stdin.write("\n")
    sibling.stdin.flush()
    assert sibling.stdout.readline() == "over\n"
    # and when all have ended, what is left of them goes.
    assert leave(krex, holder)["reasons"] == ["controller_lost"]
    wait_for(lambda: "populated 0" in Path(entry["cgroup"], "cgroup.events").read_text())
    assert f"removed {entry['cgroup']}\n" in krex("thaw", "--all").stdout
    assert krex("thaw", "--all").stdout == "nothing was left behind\n"
    assert not Path(entry["cgroup"]).exists()


def test_a_living_controller_is_not_interfered_with(krex: Krex) -> None:
    sibling, entry, holder = frozen_sibling(krex)
    refused = krex("thaw", "--all")
    assert refused.returncode == 1 and "a controller runs" in refused.stderr
    assert is_frozen(entry)
    assert leave(krex, holder)["exclusive"]
    sibling.communicate("\n", timeout=DEADLINE_S)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_region_whose_sibling_was_thawed_is_not_exclusive(krex: Krex, by_name: bool) -> None:
    sibling, entry, holder = frozen_sibling(krex)
    words = [entry["command"]] if by_name else ["--all", "--force"]
    thawed = krex("thaw", *words)
    assert (thawed.returncode, thawed.stdout) == (0, f"thawed {entry['cgroup']}\n")
    sibling.communicate("\n", timeout=DEADLINE_S)  # it ends while the region goes on
    record = leave(krex, holder)
    assert (record["exclusive"], record["reasons"]) == (False, ["sibling_thawed"])


def test_thawing_who_does_not_stand_still(krex: Krex) -> None:
    child = krex.popen(*krex.base, "run", "--", "sh", "-c", "echo up; read line")
    assert child.stdout.readline() == "up\n"
    [entry] = krex.status()["commands"]
    answer = krex("thaw", entry["command"])
    assert answer.returncode == 0 and "does not stand still" in answer.stdout
    unknown = krex("thaw", "c-1-1")
    assert unknown.returncode == 1 and "krex status" in unknown.stderr
    child.communicate("\n", timeout=DEADLINE_S)


def test_usage(cli: Krex) -> None:
    for words in (["thaw"], ["thaw", "--all", "c-1-1"], ["thaw", "--force", "c-1-1"]):
        assert cli(*words).returncode == 2
    assert cli("thaw", "--all").stdout == "nothing was left behind\n"
