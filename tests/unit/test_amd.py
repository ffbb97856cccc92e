# SPDX-License-Identifier: Apache-2.0
"""Which GPU of AMD's a command sees, by what the kernel driver and the user say."""

from __future__ import annotations

from pathlib import Path

import pytest

from krex.errors import LaunchError
from krex.launch import amd
from krex.launch.visible import allowed, by_uuid

ONE, TWO, THREE = "pci:0000:0c:00.0", "pci:0000:22:00.0", "pci:0001:22:1f.1"
UNIQUE = {ONE: 0xA1B2C3D4E5F60001, TWO: 0xA1B2C3D4E5F60002, THREE: 0x00000000000000FF}
UUID = {key: f"GPU-{number:016x}" for key, number in UNIQUE.items()}


class Machine:
    """What Linux shows of a machine's nodes: a processor is the first."""

    def __init__(self, folder: Path) -> None:
        self.nodes, self.render = folder / "nodes", folder / "dri"
        self.render.mkdir()
        self.add("cpu_cores_count 64\nsimd_count 0\nlocation_id 0\nunique_id 0\n")

    def add(self, properties: str) -> None:
        number = len(list(self.nodes.iterdir())) if self.nodes.exists() else 0
        node = self.nodes / str(number)
        node.mkdir(parents=True)
        (node / "properties").write_text(properties)

    def card(self, key: str, *, unique: int, has_file: bool = True) -> None:
        domain, bus, place = key.removeprefix("pci:").split(":")
        device, function = place.split(".")
        at = (int(bus, 16) << 8) | (int(device, 16) << 3) | int(function)
        minor = 128 + len(list(self.nodes.iterdir()))
        if has_file:
            (self.render / f"renderD{minor}").touch()
        self.add(
            f"simd_count 304\nlocation_id {at}\ndomain {int(domain, 16)}\n"
            f"drm_render_minor {minor}\nunique_id {unique}\nname aqua\n"
        )

    def cards(self) -> list[amd.Card]:
        return amd.cards(str(self.nodes), str(self.render))

    def give(self, environment: dict[str, str], device: str) -> dict[str, str]:
        amd.give(environment, device, str(self.nodes), str(self.render))
        return environment


@pytest.fixture
def empty(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(empty: Machine) -> Machine:
    """With three cards."""
    for key, unique in UNIQUE.items():
        empty.card(key, unique=unique)
    return empty


def test_cards_have_the_keys_and_names_that_the_runtime_gives_them(machine: Machine) -> None:
    assert [(card.key, card.uuid) for card in machine.cards()] == list(UUID.items())


def test_nodes_are_in_the_order_of_their_numbers(empty: Machine) -> None:
    for bus in range(12):
        empty.card(f"pci:0000:{bus:02x}:00.0", unique=bus + 1)
    assert [card.key[9:11] for card in empty.cards()] == [f"{bus:02x}" for bus in range(12)]


def test_a_card_whose_device_file_is_not_here_does_not_count(empty: Machine) -> None:
    empty.card(ONE, unique=1, has_file=False)
    empty.card(TWO, unique=2)
    assert [card.key for card in empty.cards()] == [TWO]


def test_where_there_is_no_driver_there_is_no_card(tmp_path: Path) -> None:
    assert amd.cards(str(tmp_path / "none")) == []
    assert allowed([ONE], {"HIP_VISIBLE_DEVICES": "9"}, str(tmp_path), []) == [ONE]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, [ONE, TWO, THREE]),
        ({"HIP_VISIBLE_DEVICES": "2, 0"}, [ONE, THREE]),
        ({"HIP_VISIBLE_DEVICES": UUID[TWO]}, [TWO]),
        ({"HIP_VISIBLE_DEVICES": ""}, [ONE, TWO, THREE]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [TWO]),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, [ONE]),
        ({"ROCR_VISIBLE_DEVICES": "2,1"}, [TWO, THREE]),
        ({"ROCR_VISIBLE_DEVICES": f"2,{UUID[ONE]}", "HIP_VISIBLE_DEVICES": "1"}, [ONE]),
        ({"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": UUID[THREE]}, [THREE]),
        ({"ROCR_VISIBLE_DEVICES": UUID[THREE][:10].upper()}, [THREE]),
        ({"ROCR_VISIBLE_DEVICES": "1,1,0"}, [TWO]),
        ({"ROCR_VISIBLE_DEVICES": "1,7,0"}, [TWO]),
    ],
)
def test_of_the_named_devices_the_visible_ones_are_taken(
    machine: Machine, tmp_path: Path, variables: dict[str, str], wanted: list[str]
) -> None:
    assert allowed([ONE, TWO, THREE], variables, str(tmp_path), machine.cards()) == wanted


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ROCR_VISIBLE_DEVICES": ""}, "ROCR_VISIBLE_DEVICES= leaves none of"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, "HIP_VISIBLE_DEVICES=-1 leaves none of"),
        ({"HIP_VISIBLE_DEVICES": "GPU-a1"}, "leaves none of"),  # the beginning of two
        (
            {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"},
            "ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1 leaves none of",
        ),
    ],
)
def test_what_shows_none_of_them_is_refused(
    machine: Machine, tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(LaunchError, match=said):
        allowed([ONE, TWO, THREE], variables, str(tmp_path), machine.cards())


def test_a_device_may_have_the_name_that_the_driver_gave_it(
    machine: Machine, tmp_path: Path
) -> None:
    cards = machine.cards()
    assert by_uuid(UUID[TWO], str(tmp_path), cards) == TWO
    assert by_uuid("GPU-0000", str(tmp_path), cards) == THREE
    with pytest.raises(LaunchError, match="names several GPUs"):
        by_uuid("GPU-a1b2", str(tmp_path), cards)


def test_the_command_sees_the_one_that_it_got(machine: Machine, tmp_path: Path) -> None:
    # GIVEN what the user had set WHEN the command is given one of the cards
    given = {"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1,0"}
    environment = machine.give(given, TWO)
    # THEN it sees that one by all variables that HIP reads
    assert allowed([ONE, TWO, THREE], environment, str(tmp_path), machine.cards()) == [TWO]
    assert environment["ROCR_VISIBLE_DEVICES"] == UUID[TWO]


def test_what_cannot_be_named_changes_nothing(empty: Machine) -> None:
    # An old card, and one in two parts.
    empty.card(ONE, unique=0)
    for _ in range(2):
        empty.card(TWO, unique=UNIQUE[TWO])
    for key in (ONE, TWO, THREE):
        assert empty.give({}, key) == {}
