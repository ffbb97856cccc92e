# SPDX-License-Identifier: Apache-2.0
"""On which of several devices a command runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from krex.controller.placement import (
    large_enough,
    least_loaded,
    simulated_keys,
    size,
)
from krex.controller.request import Refusal, Request, Simulated, parse
from krex.launch.channel import PROTOCOL


def server(**loads: int) -> Any:
    """Devices of these names, with so many commands each; those in `full` have no memory left."""
    devices = {
        name.replace("_", ":"): SimpleNamespace(
            admission=SimpleNamespace(load=load % 100, has_room=lambda _, load=load: load < 100)
        )
        for name, load in loads.items()
    }
    return SimpleNamespace(devices=devices)


def request(*devices: str, **visible: str) -> Request:
    return Request(argv=[], devices=[*devices] or None, simulated=Simulated(visible=visible))


def test_the_device_with_the_fewest_commands_is_taken_and_the_first_of_several():
    assert (
        least_loaded(server(sim_0=2, sim_1=1, sim_2=1), ["sim:0", "sim:1", "sim:2"], 0) == "sim:1"
    )
    assert least_loaded(server(sim_0=2, sim_1=1), ["sim:0", "sim:1", "sim:2"], 0) == "sim:2"


def test_one_that_lacks_memory_now_comes_last():
    assert least_loaded(server(sim_0=100, sim_1=7), ["sim:0", "sim:1"], 1) == "sim:1"
    assert least_loaded(server(sim_0=100, sim_1=101), ["sim:0", "sim:1"], 1) == "sim:0"


def test_named_and_visible_devices_are_both_heeded():
    assert simulated_keys(request(), 3) == ["sim:0", "sim:1", "sim:2"]
    assert simulated_keys(request("sim:2", "sim:1"), 3) == ["sim:1", "sim:2"]
    assert simulated_keys(request(CUDA_VISIBLE_DEVICES="2,0"), 3) == ["sim:0", "sim:2"]
    wish = request("sim:1", "sim:2", CUDA_VISIBLE_DEVICES="2,0")
    assert simulated_keys(wish, 3) == ["sim:2"]


def test_a_variable_counts_what_the_one_before_has_left():
    wish = request(ROCR_VISIBLE_DEVICES="2,1", HIP_VISIBLE_DEVICES="0")
    assert simulated_keys(wish, 3) == ["sim:2"]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (request("sim:3"), "sim:3 is none of the simulated devices, sim:0 to sim:2"),
        (request("sim:3"), "; say --sim-gpus 4$"),
        (request("sim:16"), "; name one of them$"),
        (request("cpu:0"), "simulated GPUs, cpu:0 is none; leave one of the two out"),
        (
            request("sim:0", CUDA_VISIBLE_DEVICES="1"),
            "CUDA_VISIBLE_DEVICES=1 leaves none of sim:0;",
        ),
        (request(CUDA_VISIBLE_DEVICES=""), "leaves none of sim:0 to sim:2"),
        (
            request(ROCR_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="1"),
            "ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1 leaves none of sim:0 to sim:2",
        ),
    ],
)
def test_what_leaves_no_device_is_refused(wish, said):
    with pytest.raises(Refusal, match=said):
        simulated_keys(wish, 3)


def test_a_device_has_to_have_the_memory():
    assert large_enough({"cpu:0": None}, 0) == ["cpu:0"]
    assert large_enough({"sim:0": 8, "sim:1": 16}, 9) == ["sim:1"]
    with pytest.raises(Refusal, match="more than the 16 bytes"):
        large_enough({"sim:0": 8, "sim:1": 16}, 17)
    with pytest.raises(Refusal, match="how much memory cpu:0 has"):
        large_enough({"cpu:0": None}, 1)


def test_what_is_no_device_is_refused_with_all_kinds_that_there_are():
    with pytest.raises(Refusal, match=r"'gpu' is not a device; say pci:.*mig:.*cpu:0.*sim:"):
        parse({"op": "run", "protocol": PROTOCOL, "argv": [], "devices": ["gpu"]})


def test_sizes_are_written_as_people_do():
    assert [size(n) for n in (5, 1 << 10, 3 << 29, 80 << 30, 1 << 40)] == [
        "5 bytes", "1KiB", "1.5GiB", "80GiB", "1TiB",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"devices": []},
        {"devices": ["gpu"]},
        {"simulated": {"devices": 0}},
        {"simulated": {"model": "x" * (1 << 17)}},
        {"protect": "all"},
        {"memory": 0},
        {"memory": "8GiB"},
    ],
    ids=str,
)
def test_a_request_that_is_none_is_refused(change):
    message = {"protocol": PROTOCOL, "argv": ["true"]}
    assert parse(dict(message)).protect == "freeze"
    with pytest.raises(Refusal):
        parse(message | change)
