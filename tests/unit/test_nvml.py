# SPDX-License-Identifier: Apache-2.0
"""Who is on an NVIDIA device, by a library that says what a test has it say."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.waiting import wait_for

from krex.controller import nvml
from krex.controller.nvml import Nvml
from krex.controller.residents import Resident


class NVMLError(Exception):
    """As nvidia-ml-py has it."""


class Library:
    """In the place of pynvml."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: list[tuple[int, int | None]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def nvmlInit(self) -> None:  # noqa: N802
        self.go_on.wait(30)

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> str:  # noqa: N802
        return f"card {address}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return f"part {uuid}"

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: str) -> list[Any]:  # noqa: N802
        self.asked.append(handle)
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.found]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    # As on a host, whatever these tests run in.
    monkeypatch.setattr(nvml, "_INIT_PID_NAMESPACE", Path("/proc/self/ns/pid").stat().st_ino)
    return library


def answer(adapter: Nvml, *processes: int, fresh_s: float = 0.0) -> Any:
    question = adapter.ask(processes, fresh_s)
    wait_for(question.done)
    return question.residents


def test_a_card_is_asked_by_its_address(library: Library) -> None:
    library.found = [(5, 1 << 30), (7, None)]
    assert answer(Nvml("pci:0000:3b:00.0")) == [Resident(5, 1 << 30), Resident(7, None)]
    assert library.asked == ["card 0000:3b:00.0"]


def test_a_part_of_a_card_is_asked_by_its_uuid(library: Library) -> None:
    assert answer(Nvml("mig:c7a2-12")) == []
    assert library.asked == ["part MIG-c7a2-12"]


def test_nobody_waits_for_an_answer_that_takes_its_time(library: Library) -> None:
    library.go_on.clear()
    question = Nvml("pci:0000:3b:00.0").ask([5])
    assert not question.done() and question.residents is None and question.processes == (5,)
    library.go_on.set()
    wait_for(question.done)
    assert question.residents == []


def test_a_recent_answer_will_do_where_that_is_said(library: Library) -> None:
    adapter = Nvml("pci:0000:3b:00.0")
    answer(adapter)
    library.found = [(5, 1)]
    assert answer(adapter, fresh_s=60.0) == []
    assert answer(adapter) == [Resident(5, 1)]
    assert len(library.asked) == 2


def refuse(*_: object) -> None:
    raise NVMLError


def is_missing(monkeypatch: pytest.MonkeyPatch, _: Library) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # the import fails


def has_no_driver(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    monkeypatch.setattr(library, "nvmlInit", refuse)


def knows_no_such_card(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    monkeypatch.setattr(library, "nvmlDeviceGetHandleByPciBusId", refuse)


@pytest.mark.parametrize("trouble", [is_missing, has_no_driver, knows_no_such_card])
def test_without_an_answer_nobody_knows(
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[pytest.MonkeyPatch, Library], None],
) -> None:
    trouble(monkeypatch, library)
    assert answer(Nvml("pci:0000:3b:00.0")) is None


def test_pids_of_another_namespace_are_not_believed(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a container, in which NVML may give the pids of the host
    monkeypatch.setattr(nvml, "_INIT_PID_NAMESPACE", 0)
    library.found = [(70005, 1), (70007, 1)]
    # THEN they are ours if one of those that are known to be there is among them
    assert answer(Nvml("pci:0000:3b:00.0"), 5, 7) is None
    assert answer(Nvml("pci:0000:3b:00.0"), 5, 70007) is not None
