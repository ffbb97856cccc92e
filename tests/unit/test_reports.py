# SPDX-License-Identifier: Apache-2.0
"""KREX_REPORT for another user: written by a process of that user's."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandbox import NOBODY, needs_root
from support.waiting import ended, wait_for

from krex.controller.reports import Scribe

pytestmark = needs_root


@pytest.fixture
def scribe() -> Iterator[Scribe]:
    scribe = Scribe(NOBODY, NOBODY)
    yield scribe
    scribe.close()


def test_lines_arrive_in_order_from_a_process_without_rights(scribe, tmp_path):
    with (tmp_path / "r").open("ab") as file:
        for number in range(20):
            scribe.write(file.fileno(), b"%d\n" % number)
    wait_for(lambda: (tmp_path / "r").read_text().count("\n") == 20)
    assert (tmp_path / "r").read_text().split() == [str(n) for n in range(20)]
    status = Path(f"/proc/{scribe._pid}/status").read_text()
    ids = [line.split()[1:] for line in status.splitlines() if line.startswith(("Uid", "Gid"))]
    assert ids == [[str(NOBODY)] * 4] * 2
    assert "CapEff:\t0000000000000000" in status and "\nGroups:\t \n" in status


def test_it_has_nothing_of_ours(scribe, tmp_path):
    with (tmp_path / "r").open("ab") as file:
        scribe.write(file.fileno(), b"x\n")
        wait_for((tmp_path / "r").read_text)
        folder = Path(f"/proc/{scribe._pid}/fd")
        wait_for(lambda: {path.name for path in folder.iterdir()} == {"0", "1", "2", "3"})


def test_a_pipe_that_is_full_does_not_hold_us_up(scribe):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write_end, bytes(4096)):
            pass
    os.set_blocking(write_end, True)
    with contextlib.suppress(BlockingIOError):
        for _ in range(10_000):
            scribe.write(write_end, b"x" * 200)
    os.kill(scribe._pid, signal.SIGKILL)  # it waits for ever
    os.close(read_end)
    os.close(write_end)


def test_a_killed_one_is_replaced_and_it_ends_with_us(scribe, tmp_path):
    with (tmp_path / "r").open("ab") as file:
        scribe.write(file.fileno(), b"1\n")
        wait_for((tmp_path / "r").read_text)
        first = scribe._pid
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: ended(first))
        scribe.write(file.fileno(), b"2\n")
        wait_for(lambda: (tmp_path / "r").read_text() == "1\n2\n")
    second = scribe._pid
    scribe.close()
    wait_for(lambda: ended(second))
