# SPDX-License-Identifier: Apache-2.0
"""What the simulated driver promises: orders, waits, errors, names; each by its own program."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("rules_program.py")
MEMORY = Path(__file__).with_name("memory_program.py")
SCENARIOS = re.findall(r"^@scenario\ndef (\w+)", MEMORY.read_text(), re.MULTILINE)
API = Path(__file__).parents[3] / "shim" / "cuda" / "api.def"
INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 1, 2, 3
INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND, NOT_READY = 201, 400, 500, 600
ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, DESTROYED, NOT_SUPPORTED, LOST = 700, 702, 709, 801, 999


def faulty(fault: str) -> tuple[str]:
    """The model in which the kernel `nothing` goes wrong so, after a microsecond."""
    return (f"rule 1000 0 0 0 0 {fault} nothing",)


@pytest.fixture
def rule(devices):
    """Runs a rule's program; what it found."""

    def run(name: str, *arguments: str) -> Any:
        return devices.run(sys.executable, PROGRAM, name, *arguments)

    return run


@pytest.mark.parametrize(
    ("devices", "code"),
    [(faulty("illegal_address"), ILLEGAL_ADDRESS), (faulty("timeout"), LAUNCH_TIMEOUT)],
    indirect=["devices"],
)
def test_a_kernel_that_fails_spoils_its_context_only(rule, code):
    # GIVEN a kernel of which the model says that it fails
    # WHEN it is launched
    found = rule("fault")
    # THEN every later call in that context says so
    assert found["first"] == code
    assert found["later"] == [code, code]
    # AND another context of the process is of use
    assert (found["created"], found["fresh"]) == (0, 0)


@pytest.mark.parametrize("devices", [faulty("lost")], indirect=True)
def test_a_lost_device_is_lost_for_every_call(rule):
    # GIVEN a kernel that takes its device away
    # WHEN it is launched
    found = rule("fault")
    # THEN every later call says so, in whatever context
    assert found["first"] == found["created"] == LOST
    assert found["later"] == [LOST, LOST]


@pytest.mark.parametrize("devices", [faulty("hang")], indirect=True)
def test_a_kernel_that_never_ends_leaves_other_streams_alone(rule):
    # GIVEN a kernel that never ends
    # WHEN it is launched, and another stream waited for
    found = rule("hang")
    # THEN it is not ready, and the other is
    assert found == {"query": NOT_READY, "beside": 0}


def test_a_kernel_that_computes_with_wild_addresses_fails(rule):
    # GIVEN a kernel of the catalogue, and addresses that nobody allocated
    # WHEN it is launched
    # THEN that is an illegal address, for good
    assert rule("wild") == {"first": ILLEGAL_ADDRESS, "later": ILLEGAL_ADDRESS}


def test_the_death_of_the_device_process_ends_every_wait(devices, rule):
    # GIVEN a program that waits for a stream that stands still
    # WHEN the process of the devices is killed
    found = rule("killed", str(devices.pid))
    # THEN the wait ends, and every call says that the device is lost
    assert found == {"waited": LOST, "later": LOST}


def test_memory_runs_out_and_comes_back(rule):
    # GIVEN a device with tens of gigabytes, none of them of this machine
    # WHEN a program asks for more than there is, and for more than is left
    found = rule("out_of_memory")
    # THEN it is refused both, and what it frees is free again
    assert found["codes"] == [OUT_OF_MEMORY, OUT_OF_MEMORY]
    assert 0 < found["left"] <= 64 << 20
    assert found["again"]


def test_the_host_can_not_touch_device_memory(rule):
    # GIVEN an address of device memory
    # WHEN the host reads there
    # THEN it dies of it, as on a real one
    assert rule("host_access") == {"signal": signal.SIGSEGV}


def test_a_forked_child_has_no_driver(rule):
    # GIVEN a program that uses the driver
    # WHEN it forks, and the child calls
    found = rule("fork")
    # THEN the child is told that the driver is not initialized, and the parent goes on
    assert found == {"child": [NOT_INITIALIZED] * 3, "parent": 0}


def test_a_launch_into_a_full_queue_waits_for_room(rule):
    # GIVEN a stream that stands still
    # WHEN more is submitted to it than the queue holds
    found = rule("full_queue")
    # THEN the call that finds it full waits until the stream goes on
    assert found == {"blocked_at": 1023, "blocked": True, "made": 1200}


def test_asynchronous_copies_return_when_the_memory_allows(rule):
    # GIVEN a stream that stands still
    # WHEN copies go from and to pageable and pinned memory
    found = rule("copies")
    # THEN the one to pinned memory did not wait, and the one to pageable memory did
    assert found["after_pinned"] == NOT_READY
    assert found["waits"]
    assert found["query"] == 0
    # AND what went from a small pageable buffer is what was there at the call
    assert found["first"] == 7


def test_the_legacy_stream_and_blocking_ones_wait_for_each_other(rule):
    # GIVEN a blocking stream that stands still
    # WHEN work goes to the legacy stream, and to one that does not block
    found = rule("streams")
    # THEN the legacy stream waits and the other does not
    assert found["legacy"] == NOT_READY
    assert found["after"] == 0
    # AND stream 0 of the per-thread forms is the thread's own
    assert found["own"]


def test_an_event_of_a_context_is_behind_all_and_holds_nobody(rule):
    # GIVEN a stream that stands still and one that goes on
    # WHEN an event is recorded for all of the context
    found = rule("context_event")
    # THEN it waits for both, who waits for it waits too, and nobody else does
    assert found == {"before": NOT_READY, "waits": NOT_READY, "after": 0}


def test_kernels_and_streams_wait_for_words(rule):
    # GIVEN a kernel that spins on a word of the host's, and a word written behind it
    # WHEN the host sets the first
    found = rule("words")
    # THEN the second was written then, and not before
    assert found == {"held": [NOT_READY, 0], "written": 5}


def test_what_can_not_be_is_refused_in_the_call(rule):
    # GIVEN impossible shapes, and handles that are none
    # WHEN they are used
    found = rule("refused")
    # THEN each is refused in the call, with the vendor's code
    shapes = ("no_blocks", "no_threads", "many_threads", "deep", "wide")
    assert {name: found[name] for name in shapes} == dict.fromkeys(shapes, INVALID_VALUE)
    assert found["context"] == INVALID_CONTEXT
    assert found["stream"] == found["event"] == found["function"] == INVALID_HANDLE
    assert found["pointer"] == INVALID_VALUE
    # AND a private table is refused too, and nothing written
    assert found["table"] == NOT_FOUND
    assert found["table_is"] == 1


def test_a_destroyed_context_stays_current_and_says_so(rule):
    # GIVEN a context that is current in one thread
    # WHEN another one destroys it
    found = rule("destroyed")
    # THEN calls say that it is destroyed, and it can't be made current again
    assert found["codes"] == [DESTROYED, INVALID_CONTEXT]
    # AND so it is with a primary context that was released
    assert found["released"] == DESTROYED


def test_every_name_is_there_and_handed_out(rule):
    # GIVEN the names that libcuda.so.1 exports
    symbols = re.findall(r"^KREX_CU_API\(\w+, \w+, (\w+),", API.read_text(), re.MULTILINE)
    assert len(symbols) > 600
    # WHEN they are looked up, directly and by cuGetProcAddress
    found = rule("names", *symbols)
    # THEN all are there
    assert found["missing"] == []
    # AND what is asked for by name and version is the right one, or the reason is said
    assert found["empty"] == found["unknown"] == [NOT_FOUND, 1, True]
    assert found["too_old"] == [NOT_FOUND, 2, True]
    right = ("legacy", "per_thread", "first_abi", "second_abi", "unsupported")
    assert {name: found[name] for name in right} == {name: [0, 0, True] for name in right}
    # AND what is not supported says so when it is called
    assert found["says"] == NOT_SUPPORTED


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_memory_is_as_the_vendor_says(devices, scenario):
    devices.run(sys.executable, MEMORY, scenario)
