# SPDX-License-Identifier: Apache-2.0
"""Who is on a simulated device, by the word of its process; what is loaded in a process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sim_device import (
    FOLDER,
    Device,
    Flag,
    Kind,
    Op,
    build_client,
    running_device,
    write_model,
)
from support.waiting import wait_for

from krex.controller.residents import Resident
from krex.protect.mappings import has_loaded, has_twice
from krex.sim.residents import Simulated

CONTEXT = 1 << 20
MANY = 70  # more than two answers have room for


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_client(tmp_path_factory.mktemp("client"))


@pytest.fixture
def device(tmp_path: Path, client: Path) -> Iterator[Device]:
    keys = {"contexts__context_ns": 0, "device__context_bytes": CONTEXT}
    model = write_model(tmp_path / "model", contexts__teardown_ns=0, **keys)
    with running_device(tmp_path, client, "--devices", "2", "--model", model) as device:
        yield device


@pytest.fixture
def adapter(device: Device) -> Iterator[Simulated]:
    with contextlib.closing(Simulated(device.socket, 0)) as adapter:
        yield adapter


def ask(adapter: Simulated) -> list[Resident] | None:
    question = adapter.ask([])
    wait_for(question.done)
    return None if question.residents is None else list(question.residents)


def test_a_process_is_there_from_its_first_context_to_the_last(
    device: Device, adapter: Simulated
) -> None:
    process = device.client().hello()
    assert ask(adapter) == []
    first, second = process.context(), process.context()
    assert process.ask(Op.ALLOCATE, context=first, value=5).status == 0
    assert ask(adapter) == [Resident(process.pid, 2 * CONTEXT + 5, 0, 0)]
    with contextlib.closing(Simulated(device.socket, 1)) as other:
        assert ask(other) == []
    process.ask(Op.CONTEXT_END, context=first)
    assert ask(adapter) == [Resident(process.pid, CONTEXT, 0, 0)]
    process.ask(Op.CONTEXT_END, context=second)
    assert ask(adapter) == []


def test_its_work_is_counted_and_what_of_it_is_on_the_device(
    device: Device, adapter: Simulated
) -> None:
    process = device.client().hello()
    context = process.context()
    held = process.run(context, 1, flags=Flag.HELD)
    process.wait_turn(held)
    process.send(Kind.EVENT, context, 2)  # that is no work
    assert ask(adapter) == [Resident(process.pid, CONTEXT, 1, 1)]
    process.send(Kind.HOST_DONE, amount=held)
    process.wait(held)
    assert ask(adapter) == [Resident(process.pid, CONTEXT, 1, 0)]


def test_all_of_very_many_are_told(device: Device, adapter: Simulated) -> None:
    processes = [device.client().hello() for _ in range(MANY)]
    for process in processes:
        process.context()
    found = ask(adapter)
    assert found and [r.pid for r in found] == sorted(process.pid for process in processes)


def test_a_connection_serves_many_questions_and_several_at_once(adapter: Simulated) -> None:
    questions = [adapter.ask([]) for _ in range(3)]
    for question in questions:
        wait_for(question.done)
    assert [question.residents for question in questions] == [[], [], []]
    assert ask(adapter) == []


def test_nobody_knows_while_no_process_of_devices_is_there(
    device: Device, adapter: Simulated, tmp_path: Path
) -> None:
    assert ask(Simulated(tmp_path / "nowhere", 0)) is None
    assert ask(adapter) == []
    device.stop()
    assert ask(adapter) is None


TWICE = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
if len(sys.argv) > 2:
    dlmopen = ctypes.CDLL(None).dlmopen
    dlmopen.restype = ctypes.c_void_p
    assert dlmopen(ctypes.c_long(-1), sys.argv[1].encode(), os.RTLD_NOW)
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_a_driver_that_is_loaded_twice_is_noticed(times: int) -> None:
    path = FOLDER / "libcuda.so.1"
    words = [sys.executable, "-c", TWICE, path, *["again"][: times - 1]]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        assert has_loaded(process.pid, "libcuda.so")
        assert has_twice(process.pid, "libcuda.so") == (times == 2)
        assert not has_loaded(os.getpid(), "libcuda.so")
        process.communicate()
