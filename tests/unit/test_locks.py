# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose file lock, from what the kernel says; and who tries for one."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.waiting import wait_for

from krex.protect.locks import blockers, has_open, keeps, kept, parse_all, read
from krex.protect.opens import Opens

SAMPLE = """\
1: POSIX  ADVISORY  READ 100 fd:00:77 128 128
2: FLOCK  ADVISORY  WRITE 200 08:01:7864554 0 EOF
2: -> FLOCK  ADVISORY  WRITE 300 08:01:7864554 0 EOF
2:  -> FLOCK  ADVISORY  WRITE 301 08:01:7864554 0 EOF
3: OFDLCK ADVISORY  READ -1 00:06:1028 0 0
4: LEASE  ACTIVE    READ 400 08:01:99 0 EOF
5: something new that nobody knows
6: POSIX  ADVISORY  WRITE 201 <none>:0 0 EOF
"""


def test_the_kernel_s_list_is_read():
    locks = {lock.owner.pid: lock for lock in parse_all(SAMPLE)}
    assert [w.pid for w in locks[200].waiters] == [300, 301]
    assert locks[200].owner.inode == 7864554
    assert locks[100].waiters == locks[-1].waiters == locks[400].waiters == ()


@pytest.mark.parametrize(
    ("waiting", "others", "found"),
    [
        ({300}, {"a": {200}, "b": {100}}, {"a"}),
        ({9, 301}, {"a": {1, 200}}, {"a"}),
        ({300}, {"a": {301}}, set()),  # waits as well
        ({9}, {"a": {200}}, set()),  # does not wait
        ({300}, {}, set()),
    ],
)
def test_who_is_in_the_way(waiting: set[int], others: dict[str, set[int]], found: set[str]):
    assert blockers(parse_all(SAMPLE), waiting, others) == found


LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
TAKE: dict[str, Callable[[int], object]] = {
    "flock": lambda fd: fcntl.flock(fd, fcntl.LOCK_EX),
    "posix": lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX),
    "ofd": lambda fd: fcntl.fcntl(fd, 37, LOCK),
}
WAITS = {
    "flock": "fcntl.flock(0, fcntl.LOCK_EX)",
    "posix": "fcntl.lockf(0, fcntl.LOCK_EX)",
    "ofd": f"fcntl.fcntl(0, 38, {LOCK!r})",
}


@pytest.mark.parametrize("kind", TAKE)
def test_a_real_lock_s_owner_is_found(tmp_path: Path, kind: str):
    path = tmp_path / "lock"
    with path.open("w+") as mine, path.open("r+") as theirs:
        TAKE[kind](mine.fileno())
        script = f"import fcntl; {WAITS[kind]}"
        child = subprocess.Popen([sys.executable, "-c", script], stdin=theirs)
        try:
            others = {"us": {os.getpid()}, "init": {1}}
            wait_for(lambda: blockers(read(), {child.pid}, others) == {"us"})
            assert blockers(read(), {1}, others) == set()
        finally:
            child.kill()
            child.wait()


def test_a_lock_whose_taker_is_gone_is_found_by_its_descriptor(tmp_path: Path):
    # As in a shell: `exec 9> lock; flock 9`.
    path = tmp_path / "lock"
    with path.open("w+") as mine, path.open("r+") as theirs:
        subprocess.run(["flock", str(mine.fileno())], pass_fds=[mine.fileno()], check=True)
        script = f"import fcntl; {WAITS['flock']}"
        child = subprocess.Popen([sys.executable, "-c", script], stdin=theirs)
        try:
            wait_for(lambda: blockers(read(), {child.pid}, {"us": {os.getpid()}}) == {"us"})
        finally:
            child.kill()
            child.wait()


def test_a_descriptor_says_what_it_has_locked(tmp_path: Path):
    with (tmp_path / "lock").open("w") as file:
        inode = os.fstat(file.fileno()).st_ino
        fcntl.flock(file, fcntl.LOCK_EX)
        [name] = {lock.owner.file for lock in read() if lock.owner.inode == inode}
        assert keeps(os.getpid(), name) and has_open(os.getpid(), inode)
        assert kept(os.getpid(), {name}) == [f"/proc/{os.getpid()}/fd/{file.fileno()}"]
        fcntl.flock(file, fcntl.LOCK_UN)
        assert not keeps(os.getpid(), name)
    assert not has_open(os.getpid(), inode)


def test_who_opens_a_file_is_counted(tmp_path: Path):
    opens = Opens()
    with (tmp_path / "one").open("w") as file:
        path = f"/proc/self/fd/{file.fileno()}"
        assert opens.count(path) == 0
        for _ in range(2):
            (tmp_path / "one").open().close()
            assert opens.count(str(tmp_path / "none")) == 0
        (tmp_path / "other").touch()
        assert opens.count(path) == 2
