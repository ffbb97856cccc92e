# SPDX-License-Identifier: Apache-2.0
"""What a controller that died is known to have left: by the journal, not by anybody's pid."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import posix_ipc
import pytest
from support.waiting import wait_for

from krex.protect.freezer import find_base
from krex.protect.journal import BoardEntry, Journal, lock

pytestmark = pytest.mark.skipif(find_base() is None, reason="no writable cgroup v2 directory")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "control.sock")


@pytest.fixture
def path() -> Iterator[Path]:
    """Where a group of the test's own may be made."""
    path = find_base() / f"krex-c-test-{uuid.uuid4().hex[:8]}"
    yield path
    if path.exists():
        path.joinpath("cgroup.freeze").write_text("0")
        path.rmdir()


def later(journal: Journal) -> Journal:
    """The journal as the next controller finds it."""
    return Journal(journal.folder.parent / "control.sock")


def test_an_empty_group_is_thawed_and_removed(journal: Journal, path: Path) -> None:
    journal.make_group(path).freeze()
    left = later(journal).recover()
    assert (left.thawed, left.removed, left.populated) == ([str(path)], [str(path)], [])
    assert not path.exists() and not list(journal.folder.iterdir())


def test_a_group_with_processes_runs_on_and_is_removed_after_them(
    journal: Journal, path: Path
) -> None:
    group = journal.make_group(path)
    child = subprocess.Popen(["sleep", "60"])
    try:
        (path / "cgroup.procs").write_text(str(child.pid))
        group.freeze()
        wait_for(group.is_frozen)
        # WHEN the next controller starts THEN the process runs, and is not lost sight of.
        next_one = later(journal)
        left = next_one.recover()
        assert (left.thawed, left.populated) == ([str(path)], [str(path)])
        assert (path / "cgroup.freeze").read_text() == "0\n"
        next_one.tidy(left)
        assert path.exists() and left.populated
    finally:
        child.kill()
        child.wait()
    wait_for(group.is_empty)
    next_one.tidy(left)
    assert not path.exists() and not left.populated and not list(journal.folder.iterdir())


def test_a_group_that_only_has_the_same_name_is_left_alone(journal: Journal, path: Path) -> None:
    # GIVEN a group that went, and another controller's of the same name, which is frozen
    journal.make_group(path).freeze()
    path.rmdir()
    path.mkdir()
    (path / "cgroup.freeze").write_text("1")
    left = later(journal).recover()
    assert (left.thawed, left.removed, left.populated) == ([], [], [])
    assert (path / "cgroup.freeze").read_text() == "1\n"
    assert not list(journal.folder.iterdir())


def test_entries_of_another_boot_mean_nothing(journal: Journal, path: Path) -> None:
    journal.boot = "another"
    journal.make_group(path).freeze()
    assert later(journal).recover().thawed == []
    assert path.exists()


def test_a_controller_killed_between_note_and_birth(journal: Journal, path: Path) -> None:
    journal.make_group(path)
    [file] = journal.folder.iterdir()
    file.write_bytes(file.read_bytes().replace(f"{path.stat().st_ino}".encode(), b"0"))
    assert later(journal).recover().removed == [str(path)]


def test_a_board_is_unlinked_and_who_takes_part_is_known(journal: Journal) -> None:
    name = f"/krex-test-{uuid.uuid4().hex[:8]}"
    # GIVEN a controller that was killed before it could unlink its board, with a process on it
    journal.note_board(name, "cpu:0")
    shared = posix_ipc.SharedMemory(name, posix_ipc.O_CREX, size=4096)
    code = "import mmap, sys; m = mmap.mmap(0, 4096); print('up', flush=True); sys.stdout.read"
    code += "\nimport time; time.sleep(60)"
    child = subprocess.Popen(
        ["python3", "-c", code], stdin=shared.fd, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "up\n"
    os.close(shared.fd)
    left = later(journal).recover()
    assert not Path("/dev/shm", name.strip("/")).exists()
    assert left.orphans_on("cpu:0") == [(name, child.pid)] and left.orphans_on("cpu:1") == []
    # WHEN it has ended THEN nothing is known of the board any more.
    child.kill()
    child.wait()
    child.stdout.close()
    assert later(journal).recover().orphans == [] and not list(journal.folder.iterdir())


def test_rubbish_is_passed_over(journal: Journal) -> None:
    journal.folder.mkdir()
    (journal.folder / "group-x").write_text("{")
    (journal.folder / "board-x").write_text('{"type":"later"}')
    assert later(journal).recover().removed == []


def test_the_lock_tells_whether_a_controller_lives(journal: Journal) -> None:
    socket = journal.folder.parent / "control.sock"
    with lock(socket) as first, lock(socket) as second:
        assert (first, second) == (True, False)
    with lock(socket) as again:
        assert again


def test_nothing_depends_on_the_journal(journal: Journal, path: Path) -> None:
    # GIVEN a folder that can't be made
    journal.folder = Path("/proc/none")
    group = journal.make_group(path)
    journal.note_board("/x", "cpu:0")
    assert group.remove() and journal.groups() == {}
    assert BoardEntry("/x", "cpu:0", "") is not None
