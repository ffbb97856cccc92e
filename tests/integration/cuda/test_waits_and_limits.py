# SPDX-License-Identifier: Apache-2.0
"""A time limit of a program's own that passes while it waits for the device."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.command_line import Krex
from support.steps import Command
from support.waiting import wait_for

WAIT_S, LIMIT_S, FAR_S = 2, "1", "100"
LINE = "a time limit of the command's own passed while it waited"


@pytest.fixture
def holder(cli: Krex) -> Command:
    """A command with a region of its own, beside which the others run on up to the device."""
    return Command(cli, "explicit", "--protect", "gate")


def waits(cli: Krex, way: str, holder: Command, **env: str) -> Command:
    """A command that waits for the device, for two seconds at least."""
    command = Command(cli, way, **env)
    holder.goes_on("idle")
    began = time.monotonic()
    command.tell()
    if way == "limited":
        wait_for(lambda: (q := cli.status()["devices"][0]["queue"]) and q[0]["waited_s"] > WAIT_S)
    else:  # who waits at the gate is on no list
        wait_for(lambda: time.monotonic() - began > WAIT_S)
    holder.goes_on("done")
    return command


def end(command: Command) -> tuple[list[str], list[dict[str, Any]]]:
    command.gets("idle")
    command.goes_on("done")
    said, report = command.ends_and_says()
    return [line for line in said.splitlines() if LINE in line], report


def test_a_limit_that_passes_in_the_wait_for_a_region_is_told(cli, holder):
    # GIVEN a marked function, a second before its limit, that waits for two until it may time
    command = waits(cli, "limited", holder, LIMIT_S=LIMIT_S)
    # WHEN it goes on THEN its handler runs only after the wait
    late_ns = command.gets("handler")
    lines, [region, told] = end(command)
    assert late_ns > region["granted_ns"]
    # AND one line says so,
    assert len(lines) == 1
    # and the records
    assert region["limit_wait_s"] > float(LIMIT_S)
    assert told["schema"] == "krex.command"
    assert told["limit_wait_s"] == region["limit_wait_s"]


def test_a_limit_that_passes_at_the_gate_is_told(cli, holder):
    # GIVEN a program without marks, a second before its limit, that waits for two at the gate
    command = waits(cli, "limited_unmarked", holder, LIMIT_S=LIMIT_S)
    command.gets("handler")
    # WHEN it ends THEN one line, and the command's record, say so
    lines, [told] = end(command)
    assert len(lines) == 1
    assert (told["schema"], told["limit_suspected"]) == ("krex.command", False)
    assert told["limit_wait_s"] > float(LIMIT_S)


@pytest.mark.parametrize("limit_s", ["0", FAR_S])
@pytest.mark.parametrize("way", ["limited", "limited_unmarked"])
def test_who_has_no_limit_or_keeps_it_is_told_nothing(cli, holder, way, limit_s):
    # GIVEN a program that waits as long, without a limit, or far from it
    lines, report = end(waits(cli, way, holder, LIMIT_S=limit_s))
    # THEN nothing is said
    assert lines == []
    assert [record for record in report if "limit_wait_s" in record] == []
