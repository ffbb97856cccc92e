# SPDX-License-Identifier: Apache-2.0
"""What the tests of `krex run` against a scripted controller stand on."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fake_controller import Controller, Runner
from support.waiting import short_directory, wait_for

STUB = """
#include <stdint.h>
#include <sys/mman.h>
void *krex_lease_open(int fd)
{
    void *board = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    return board == MAP_FAILED ? 0 : board;
}
int64_t krex_lease_remaining_ns(void *board) { return *(volatile int64_t *)board; }
void krex_lease_reopen(int fd) { (void)fd; }
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def controller(place: Path) -> Iterator[Controller]:
    fake = Controller(place / "s")
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stub")
    (directory / "stub.c").write_text(STUB)
    path = directory / "libkrex.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", path, directory / "stub.c"], check=True, timeout=60
    )
    return path


@pytest.fixture
def krex(place: Path, library: Path) -> Runner:
    return Runner(place, library)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup v2 group of our own, in the unified or the hybrid hierarchy."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        group = root / f"krex-test-{os.getpid()}-{threading.get_ident()}"
        if not (root / "cgroup.procs").exists():
            continue
        try:
            group.mkdir()
        except OSError:
            continue
        if not (group / "cgroup.freeze").exists():
            group.rmdir()
            continue
        yield group
        if not group.exists():
            return  # a run whose controller died removed it
        (group / "cgroup.freeze").write_text("0")
        members = group / "cgroup.procs"
        wait_for(lambda members=members: not members.read_text())
        group.rmdir()
        return
    pytest.skip("no cgroup v2 group can be made here")
