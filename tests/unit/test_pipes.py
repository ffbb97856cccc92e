# SPDX-License-Identifier: Apache-2.0
"""Which standard streams join two processes, and which do not."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from krex.protect import pipes


@contextmanager
def sleeps(**streams: Any) -> Iterator[pipes.Ends]:
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | streams
    child = subprocess.Popen(["sleep", "60"], stderr=subprocess.DEVNULL, **settings)
    try:
        yield pipes.of([child.pid])
    finally:
        child.kill()
        child.wait()


def joined(one: dict[str, Any], other: dict[str, Any]) -> bool:
    with sleeps(**one) as mine, sleeps(**other) as theirs:
        assert mine.joined(theirs) == theirs.joined(mine)
        return mine.joined(theirs)


def test_a_pipe_joins_its_two_ends_and_not_two_writers_or_readers():
    read_end, write_end = os.pipe()
    assert joined({"stdout": write_end}, {"stdin": read_end})
    assert not joined({"stdout": write_end}, {"stdout": write_end})
    assert not joined({"stdin": read_end}, {"stdin": read_end})
    os.close(read_end)
    os.close(write_end)


def test_a_named_pipe_is_one(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    both = os.open(tmp_path / "fifo", os.O_RDWR)
    reader = os.open(tmp_path / "fifo", os.O_RDONLY)
    assert joined({"stdout": both}, {"stdin": reader})
    os.close(both)
    os.close(reader)


def test_a_socket_pair_joins_its_ends():
    one, other = socket.socketpair()
    third, fourth = socket.socketpair()
    with one, other, third, fourth:
        assert joined({"stdout": one}, {"stdin": other})
        assert not joined({"stdout": one}, {"stdin": one})
        assert not joined({"stdout": one}, {"stdin": third})


def test_what_everybody_shares_joins_nobody(tmp_path: Path):
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    controller, terminal = pty.openpty()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (log, terminal, null):
        assert not joined({"stdin": fd, "stdout": fd}, {"stdin": fd, "stdout": fd})
    for fd in (log, terminal, null, controller):
        os.close(fd)


def test_a_process_that_is_gone_has_no_streams():
    child = subprocess.Popen(["true"])
    child.wait()
    assert pipes.of([child.pid]) == pipes.Ends()
